// Module files that agents sent, in a folder of the data directory. A file arrives as a stream in <name>.part, which
// survives a lost connection. It becomes <name> once it is complete and verified. The least recently used files are
// removed to make room. Files sent with a pairing key are in a folder of that key, and serve only that key's
// recordings.
// Blocking. At most one caller at a time per module.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "symbol/types/module_identity.h"
#include "wire/module_chunk.h"

namespace flamewire::server {

class ModuleStore {
public:
    static constexpr std::uint64_t default_limit = std::uint64_t{2} << 30;

    explicit ModuleStore(std::string folder, std::uint64_t limit_bytes = default_limit)
        : folder_(std::move(folder)), limit_bytes_(limit_bytes) {}

    [[nodiscard]] const std::string& folder() const { return folder_; }
    // Bytes of the stream that are already here: the offset at which it continues.
    [[nodiscard]] std::uint64_t offset(const symbol::ModuleIdentity& module) const;

    struct Progress {
        std::uint64_t got = 0;
        bool whole = false;
    };
    // Appends the chunk. A chunk of another stream (our part is longer, or the offset differs) restarts with `got` 0.
    // `whole`: the stream is complete and, for a module without a build-id, its hash has arrived. invalid: the file is
    // not the module; it is discarded.
    Result<Progress> add(const symbol::ModuleIdentity& module, const wire::ModuleChunk& chunk);

private:
    [[nodiscard]] std::string path_of(const symbol::ModuleIdentity& module) const;
    Result<bool> assemble(const symbol::ModuleIdentity& module, const wire::ModuleChunk& chunk) const;
    void make_room(const std::string& keep) const;

    std::string folder_;
    std::uint64_t limit_bytes_;
};

}  // namespace flamewire::server
