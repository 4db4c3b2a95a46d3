// Module files that agents sent: a folder of the data directory. A file arrives as a stream in <name>.part, which stays
// when the connection is lost, and becomes <name> once it is whole and proved to be the right one. Those used longest ago
// make room. What came with a pairing key is in a folder of that key, and serves no other's recordings. Blocking; one
// caller at a time for a module.
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
    // Where the stream goes on: what is here of it.
    [[nodiscard]] std::uint64_t offset(const symbol::ModuleIdentity& module) const;

    struct Progress {
        std::uint64_t got = 0;
        bool whole = false;
    };
    // Appends what follows what is here. A chunk of another stream (the part here is longer, or is of another offset)
    // begins anew with `got` 0. Whole when the stream is complete, and for a module without build-id only when its hash
    // has come, too. invalid: what came is not the module; nothing of it is kept.
    Result<Progress> add(const symbol::ModuleIdentity& module, const wire::ModuleChunk& chunk);

private:
    [[nodiscard]] std::string path_of(const symbol::ModuleIdentity& module) const;
    Result<bool> assemble(const symbol::ModuleIdentity& module, const wire::ModuleChunk& chunk) const;
    void make_room(const std::string& keep) const;

    std::string folder_;
    std::uint64_t limit_bytes_;
};

}  // namespace flamewire::server
