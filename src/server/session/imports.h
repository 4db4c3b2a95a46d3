// Files of other tools, and recordings of our own agent, made sessions of this server. Which format a file has is told by
// its content. An import runs on the thread of symbols and loads; its progress can be asked for meanwhile.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "server/session/catalog.h"
#include "server/session/symbolization.h"

namespace flamewire::server {

class Imports {
public:
    enum class State : std::uint8_t { running, done, failed };
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

    // The last ones, newest first.
    [[nodiscard]] std::vector<Import> list() const;
    [[nodiscard]] std::optional<Import> find(const std::string& id) const;

private:
    void run(std::uint64_t number, const std::string& path, const std::string& name,
             const std::function<void(const Import&)>& finished);
    Result<std::string> import_file(std::uint64_t number, const std::string& path, const std::string& name);
    void progress(std::uint64_t number, std::uint64_t read_bytes, std::uint64_t total_bytes);

    Catalog& catalog_;
    Symbolization& slow_;
    const std::uint64_t memory_bytes_;
    const std::function<void()> changed_;
    mutable std::mutex mutex_;
    std::uint64_t next_ = 1;
    std::map<std::uint64_t, Import> imports_;
};

}  // namespace flamewire::server
