// Fetches debug info, executables and source files that this machine lacks from debuginfod servers, in the background.
// Sessions request what they lack, the threads of DebugFetch download it, and callbacks report it for symbolization.
// Nothing waits for a download: a slow or unreachable server costs symbols, not time.
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
    // Called from the threads of DebugFetch. `changed`: the state of a session's fetches changed. `arrived`: another
    // file of a module is in the folder.
    struct Events {
        std::function<void(const std::shared_ptr<Session>&)> changed;
        std::function<void(const symbol::ModuleIdentity&)> arrived;
    };

    // Call symbol::prepare_debuginfod() with the same folder first.
    DebugFetch(std::string folder, std::uint64_t limit_bytes, Events events);
    ~DebugFetch() { stop(); }

    // Requests what the session lacks, unless it did so recently. Never blocks.
    void request(const std::shared_ptr<Session>& session);
    // Path of a source file that the session's profile names, for one of these builds (raw build-ids), if it was
    // fetched before. Otherwise requests it; the session changes when it arrives or no server has it. busy: the request
    // is under way. All other errors explain why the file is missing. Never blocks.
    Result<std::string> source(const std::shared_ptr<Session>& session, const std::vector<std::string>& build_ids,
                               const std::string& file);
    // Cancels downloads within a second or two.
    void stop();

private:
    using Clock = std::chrono::steady_clock;
    // One build, for all sessions that lack its debug info.
    struct Job {
        symbol::ModuleIdentity identity;
        std::vector<std::pair<std::weak_ptr<Session>, profile::ModuleId>> waiting;
        ModuleFetch progress;
        bool pending = false;  // queued or being fetched
        bool no_executable = false;
        Clock::time_point retry_at{};
    };

    // A unit of work for a thread: a build, or one source file of it.
    struct Task {
        std::string build_id, file;
        auto operator<=>(const Task&) const = default;
    };
    struct Source {
        std::vector<std::weak_ptr<Session>> waiting;
        Result<std::string> outcome = std::string();
        bool pending = false;
        Clock::time_point retry_at{};  // do not retry a failure before this
    };

    void run();
    void fetch(symbol::DebuginfodClient& client, const std::string& build_id);
    void fetch_source(symbol::DebuginfodClient& client, const Task& task);
    Result<std::string> fetch_executable(symbol::DebuginfodClient& client, const std::string& build_id,
                                         const symbol::DebuginfodClient::Progress& progress);
    bool is_running();
    void publish_progress(const std::string& build_id, const ModuleFetch& progress);
    void set_notice_everywhere(const std::string& text, const std::string& remedy);
    void finish(const std::string& build_id, const Result<std::string>& outcome);

    const std::string folder_;
    const std::uint64_t limit_bytes_;
    const Events events_;

    std::mutex mutex_;
    std::condition_variable wake_;
    std::map<std::string, Job> jobs_;  // by build-id
    std::map<Task, Source> sources_;
    std::deque<Task> queue_;
    Clock::time_point paused_until_{};         // while no server responds
    std::string notice_text_, notice_remedy_;  // the last notice of the sessions
    bool stopping_ = false;
    std::vector<std::thread> threads_;
};

// Synchronous variant: fetches all that the session lacks and resolves its addresses again. `progress` gets the name of
// the current download. Returns the problems, one sentence each.
std::vector<std::string> fetch_debug_info(
    Session& session, symbol::Symbolizer& symbolizer, const std::string& folder, std::uint64_t limit_bytes,
    const std::function<void(const std::string& name, std::uint64_t got, std::uint64_t total)>& progress);

}  // namespace flamewire::server
