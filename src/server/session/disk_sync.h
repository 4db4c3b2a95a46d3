// The thread that makes sessions durable: fdatasync at most once a second a session (at once when somebody waits),
// sidecars now and then. Acknowledgements follow its callback, so that what an agent forgets is on the disk.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "server/session/catalog.h"

namespace flamewire::server {

class DiskSync {
public:
    using Synced = std::function<void(std::shared_ptr<Session>, std::uint64_t seq)>;  // called on this thread

    DiskSync(Catalog& catalog, Synced synced);
    ~DiskSync() { stop(); }

    // Something was appended. Cheap, from any thread.
    void touched(std::shared_ptr<Session> session, bool urgent);
    // Makes all durable, writes their sidecars, ends the thread.
    void stop();

private:
    using Clock = std::chrono::steady_clock;
    struct Item {
        std::shared_ptr<Session> session;
        Clock::time_point due = Clock::time_point::max();  // max: nothing to do
        Clock::time_point last{};
        Clock::time_point saved{};
        bool was_ended = false;
    };
    void run();
    void sync(Item& item);

    Catalog& catalog_;
    const Synced synced_;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::map<const Session*, Item> items_;
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace flamewire::server
