// Identifies the ELF file of a module, as the target names it.
#pragma once

#include <cstdint>
#include <string>

namespace flamewire::symbol {

enum class ModuleKind : std::uint8_t { file, kernel, vdso, jit };

// Equal build-ids mean the same module, whatever the path.
struct ModuleIdentity {
    ModuleKind kind = ModuleKind::file;
    std::string path;           // as the target sees it
    std::string build_id;       // raw bytes; empty when unknown
    std::string boot_id;        // of the target, for the kernel: the live /proc/kallsyms is valid for one boot
    std::uint64_t size = 0;     // of the file on the target; 0: unknown (the only check without a build-id)
    std::int64_t mtime_ns = 0;  // of that file
    std::string owner{};        // id of the pairing key of the agent that reported it; empty: none
};

}  // namespace flamewire::symbol
