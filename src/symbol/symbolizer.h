// Addresses to frames. The one entry to everything in src/symbol: finds a module's file, checks its build-id, builds
// the index lazily and answers batches of lookups. Thread-safe: modules are independent, lookups of one module are
// serialized.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "symbol/types/code_bytes.h"
#include "symbol/types/config.h"
#include "symbol/types/module_identity.h"
#include "symbol/types/module_report.h"
#include "symbol/types/source_frames.h"

namespace flamewire::symbol {

// The symbol that covers an address; size 0: none is known.
struct FunctionRange {
    std::string name;         // demangled
    std::uint64_t start = 0;  // ELF virtual address; of the kernel relative to _text
    std::uint64_t size = 0;
};

// Machine code of a module. Without bytes `problem` says why, in one sentence.
struct ModuleCode {
    std::string bytes;  // may be fewer than asked for, at the end of a section
    std::uint64_t address = 0;
    std::uint16_t machine = 0;
    bool big_endian = false;
    CodeKind begins = CodeKind::code;
    std::vector<CodeMark> marks;
    std::string file;             // that they are from
    std::string problem, remedy;  // remedy: what to configure; may be empty

    [[nodiscard]] CodeBytes view() const { return {as_bytes_view(bytes), address, machine, big_endian, begins, marks}; }
};

class Symbolizer {
public:
    explicit Symbolizer(Config config);
    ~Symbolizer();
    Symbolizer(const Symbolizer&) = delete;
    Symbolizer& operator=(const Symbolizer&) = delete;

    // Forgets what was found under the old configuration. Results of earlier resolve() calls stay valid values.
    void set_config(Config config);
    [[nodiscard]] Config config() const;
    // Looks for the files of one module anew.
    void forget(const ModuleIdentity& module);
    // Rises whenever answers may have become better. A caller that has older answers asks again.
    [[nodiscard]] std::uint64_t generation() const;

    // Answers in the order of `addresses`. Never fails: what is not known has no frames.
    Resolved resolve(const ModuleIdentity& module, std::span<const Address> addresses);
    ModuleReport report(const ModuleIdentity& module);
    // The functions that the addresses are in.
    std::vector<FunctionRange> functions(const ModuleIdentity& module, std::span<const Address> addresses);
    // Up to `size` bytes of code at `start`, at most 16 MiB.
    ModuleCode code(const ModuleIdentity& module, std::uint64_t start, std::uint64_t size);

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace flamewire::symbol
