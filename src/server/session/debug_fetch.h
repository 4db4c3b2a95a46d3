// Debug info, programs and source files that this machine lacks, asked of debuginfod servers in the background: sessions say what
// they lack, threads of their own fetch it, and whoever names addresses is told. Nothing waits for it: a server that is
// slow or gone costs names, not time.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/session/session.h"
#include "symbol/files/debuginfod.h"
#include "symbol/types/module_identity.h"

namespace flamewire::symbol {
class Symbolizer;
}

namespace flamewire::server {

class DebugFetch {
public:
    // All are called from the threads of this. `changed`: a session's fetches are other ones; `arrived`: more of a module
    // is in the folder.
    struct Events {
        std::function<void(const std::shared_ptr<Session>&)> changed;
        std::function<void(const symbol::ModuleIdentity&)> arrived;
    };

    // After symbol::prepare_debuginfod() with that folder.
    DebugFetch(std::string folder, std::uint64_t limit_bytes, Events events);
    ~DebugFetch() { stop(); }

    // Asks for what the session lacks, unless that was done lately. Never blocks.
    void want(const std::shared_ptr<Session>& session);
    // Where a source file is that the session's profile names, of one of these builds (raw build-ids): what came before.
    // Else it is asked for, and the session changes when it has come or nobody has it. busy: it is being asked for; all
    // others say why it is not here. Never blocks.
    Result<std::string> source(const std::shared_ptr<Session>& session, const std::vector<std::string>& build_ids,
                               const std::string& file);
    // Ends what is under way, within a second or two.
    void stop();

private:
    using Clock = std::chrono::steady_clock;
    // One build, for all sessions that lack it.
    struct Job {
        symbol::ModuleIdentity identity;
        std::vector<std::pair<std::weak_ptr<Session>, profile::ModuleId>> waiting;
        ModuleFetch progress;
        bool under_way = false;  // queued or being fetched
        bool no_program = false;
        Clock::time_point again{};
    };

    // What a thread does next: what names a build, or one source file of it.
    struct Task {
        std::string build_id, file;
        auto operator<=>(const Task&) const = default;
    };
    struct Source {
        std::vector<std::weak_ptr<Session>> waiting;
        Result<std::string> outcome = std::string();
        bool under_way = false;
        Clock::time_point again{};  // a failure is believed until then
    };

    void run();
    void fetch(symbol::DebuginfodClient& client, const std::string& build_id);
    void fetch_source(symbol::DebuginfodClient& client, const Task& task);
    Result<std::string> fetch_program(symbol::DebuginfodClient& client, const std::string& build_id,
                                      const symbol::DebuginfodClient::Progress& progress);
    bool goes_on();
    void tell(const std::string& build_id, const ModuleFetch& progress);
    void notice(const std::string& text, const std::string& remedy);
    void finish(const std::string& build_id, const Result<std::string>& outcome);

    const std::string folder_;
    const std::uint64_t limit_bytes_;
    const Events events_;

    std::mutex mutex_;
    std::condition_variable wake_;
    std::map<std::string, Job> jobs_;  // by build-id
    std::map<Task, Source> sources_;
    std::deque<Task> queue_;
    Clock::time_point paused_until_{};      // while no server answers
    std::string noticed_, noticed_remedy_;  // what the sessions were told last
    bool stopping_ = false;
    std::vector<std::thread> threads_;
};

// The same for who waits for it: fetches all that the session lacks, and names its addresses anew. `progress` is called
// with what is being fetched. The answer is what went wrong, a sentence each.
std::vector<std::string> fetch_debug_info(
    Session& session, symbol::Symbolizer& symbolizer, const std::string& folder, std::uint64_t limit_bytes,
    const std::function<void(const std::string& name, std::uint64_t got, std::uint64_t total)>& progress);

}  // namespace flamewire::server
