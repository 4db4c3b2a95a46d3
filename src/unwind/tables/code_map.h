// What a walk must know of the address space it walks in, and of the files behind it. The walker asks; an agent answers
// from its process table, an importer from map records, a test from a list.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "elf/elf_file.h"
#include "unwind/tables/rule.h"

namespace flamewire::unwind {

// Names one ELF file (or image) for the life of an Unwinder; never reused. 0: code without a file (JIT, trampolines).
using ModuleId = std::uint32_t;

// A piece of executable memory in which every address has the same module and bias.
struct CodePiece {
    std::uint64_t start = 0, end = 0;  // [start, end)
    ModuleId module = 0;
    std::uint64_t bias = 0;  // runtime address - ELF virtual address, modulo 2^64
};

// One address space.
class CodeMap {
public:
    // The piece that contains `address`. May read /proc, so it is asked once for each frame at most.
    virtual std::optional<CodePiece> find(std::uint64_t address) = 0;

    // The rule for a frame in code without a file; `piece` contains it. `pc` is a return address or the interrupted
    // instruction. A compact rule; nothing if the code is unknown.
    virtual std::optional<Rule> rule_at(const CodePiece& /*piece*/, Arch /*arch*/, std::uint64_t /*pc*/,
                                        bool /*return_address*/) {
        return std::nullopt;
    }

protected:
    ~CodeMap() = default;
};

// The files of modules.
class ModuleFiles {
public:
    // Bytes of the module's ELF file (offset 0 is the ELF header). Asked once, and again only after the module was
    // evicted. Reads happen later, through the source, which the Unwinder keeps until it evicts the module; a file that
    // was changed in place answers reads with an error. An error means that the module has no tables.
    virtual Result<elf::ByteSource> open(ModuleId module) = 0;

protected:
    ~ModuleFiles() = default;
};

}  // namespace flamewire::unwind
