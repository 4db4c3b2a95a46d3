// Files of other tools, and recordings of our own agent, made sessions of this server. Which format a file has is told by
// its content. An import runs on the thread of symbols and loads; its progress can be asked for meanwhile.
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

    // `changed` is called from any thread when an import ended.
    // `memory_bytes`: what one import may take.
    Imports(Catalog& catalog, Symbolization& slow, std::uint64_t memory_bytes, std::function<void()> changed)
        : catalog_(catalog), slow_(slow), memory_bytes_(memory_bytes), changed_(std::move(changed)) {}

    // Begins to import the file at `path`; `name` is what it is called (its last part names the session). `finished` is
    // called on the thread of imports at the end, maybe before this returns. Returns the import's id.
    std::string begin(std::string path, std::string name, std::function<void(const Import&)> finished);

    // Ends one that runs or waits for its turn, and everything of it goes. One that waits ends at once; one that runs with
    // the next piece that it reads, and is `running` until then. not_found; busy: it has ended. Any thread.
    Result<Import> cancel(const std::string& id);
    // All that have not ended. Any thread.
    void cancel_all();

    // The last ones, newest first.
    [[nodiscard]] std::vector<Import> list() const;
    [[nodiscard]] std::optional<Import> find(const std::string& id) const;

private:
    // How far a job is. Once it ends, its outcome stands.
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
    Symbolization& slow_;
    const std::uint64_t memory_bytes_;
    const std::function<void()> changed_;
    mutable std::mutex mutex_;
    std::uint64_t next_ = 1;
    std::map<std::uint64_t, JobPtr> jobs_;
};

}  // namespace flamewire::server
