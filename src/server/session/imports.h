// Imports files of other tools, and recordings of our own agent, into this server. The content determines a file's
// format. Imports run one after another on a thread of their own, so that nothing else waits for a long one; their
// progress is available meanwhile.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "server/session/catalog.h"
#include "server/session/job_thread.h"
#include "server/session/symbolization.h"

namespace flamewire::server {

class Imports {
public:
    enum class State : std::uint8_t { running, done, failed, cancelled };
    struct Import {
        std::string id, name;
        State state = State::running;
        std::uint64_t read_bytes = 0, total_bytes = 0;
        std::string session;  // done: its id
        std::string problem;  // failed: one sentence
    };

    // `changed` is called from any thread when an import ends. `memory_bytes`: limit for one import.
    Imports(Catalog& catalog, Symbolization& symbols, std::uint64_t memory_bytes, std::function<void()> changed)
        : catalog_(catalog), symbols_(symbols), memory_bytes_(memory_bytes), changed_(std::move(changed)) {}

    // Begins to import the file at `path`. `name`: its display name; the last component names the session. `finished`
    // is called on the import thread at the end, possibly before this returns. Returns the import's id.
    std::string begin(std::string path, std::string name, std::function<void(const Import&)> finished);

    // Cancels an import that runs or waits, and removes everything of it. A waiting import ends at once. A running one
    // ends at its next read and stays `running` until then. not_found; busy: it has ended. Any thread.
    Result<Import> cancel(const std::string& id);
    // Cancels all imports that have not ended, and returns when they have. Begin none afterwards.
    void stop();

    // The most recent imports, newest first.
    [[nodiscard]] std::vector<Import> list() const;
    [[nodiscard]] std::optional<Import> find(const std::string& id) const;

private:
    // The stage of a job. Once it ends, its outcome is final.
    enum class Stage : std::uint8_t { waiting, running, ending, ended };
    struct Job {
        Import import;
        Stage stage = Stage::waiting;
        std::atomic<bool> cancelled = false;
        std::function<void(const Import&)> finished;
    };
    using JobPtr = std::shared_ptr<Job>;

    void run(const JobPtr& job, const std::string& path);
    Result<std::string> guarded_import(Job& job, const std::string& path);
    Result<std::string> import_file(Job& job, const std::string& path);
    void end(Job& job, const Result<std::string>& session);
    void progress(Job& job, std::uint64_t read_bytes, std::uint64_t total_bytes);
    [[nodiscard]] JobPtr find_job(const std::string& id) const;  // under mutex_

    Catalog& catalog_;
    Symbolization& symbols_;
    const std::uint64_t memory_bytes_;
    const std::function<void()> changed_;
    mutable std::mutex mutex_;
    std::uint64_t next_ = 1;
    std::map<std::uint64_t, JobPtr> jobs_;
    JobThread thread_{"an import"};  // last: its jobs use the other members
};

}  // namespace flamewire::server
