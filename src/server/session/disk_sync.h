// The thread that makes sessions durable. It calls fdatasync at most once per second and session (at once if an agent
// waits) and writes sidecars periodically. Acknowledgments follow its callback, so an agent discards only data that is
// on disk.
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

    // A session has new data. Cheap, any thread.
    void mark_dirty(std::shared_ptr<Session> session, bool urgent);
    // Makes all sessions durable, writes their sidecars and ends the thread.
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
