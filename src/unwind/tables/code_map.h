// What a walk needs from the address space and the files mapped into it. The agent implements this with its process
// table, importers with map records, tests with lists.
#pragma once

#include <cstdint>
#include <optional>

#include "base/code_address.h"
#include "base/result.h"
#include "elf/elf_file.h"
#include "unwind/tables/rule.h"

namespace flamewire::unwind {

// Identifies one ELF file (or image) for the life of an Unwinder; never reused. 0: code without a file (JIT,
// trampolines).
using ModuleId = std::uint32_t;

// A range of executable memory in which every address has the same module and bias.
struct CodePiece {
    std::uint64_t start = 0, end = 0;  // [start, end)
    ModuleId module = 0;
    std::uint64_t bias = 0;  // runtime address - ELF virtual address, modulo 2^64
};

// One address space.
class CodeMap {
public:
    // The piece that contains `address`. May read /proc, so it is called at most once per frame.
    virtual std::optional<CodePiece> find(std::uint64_t address) = 0;

    // The rule for a frame in code without a file; `piece` contains it. Only compact rules. nullopt if the code is unknown.
    virtual std::optional<Rule> rule_at(const CodePiece& /*piece*/, Arch /*arch*/, CodeAddress /*pc*/) {
        return std::nullopt;
    }

protected:
    ~CodeMap() = default;
};

// The files of modules.
class ModuleFiles {
public:
    // Opens the module's ELF file (offset 0 is the ELF header). Called once, and again only after an eviction. The
    // Unwinder keeps the source, and reads through it, until it evicts the module. Reads fail if the file was changed
    // in place. On error the module has no tables.
    virtual Result<elf::ByteSource> open(ModuleId module) = 0;

protected:
    ~ModuleFiles() = default;
};

}  // namespace flamewire::unwind
