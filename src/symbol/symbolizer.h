// Converts addresses to frames. The only entry point to src/symbol: finds a module's file, checks its build-id, builds
// the index on demand and answers batches of lookups. Thread-safe: modules are independent, and lookups in one module
// are serialized.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/code_address.h"
#include "base/result.h"
#include "symbol/types/code_bytes.h"
#include "symbol/types/config.h"
#include "symbol/types/module_identity.h"
#include "symbol/types/module_report.h"
#include "symbol/types/source_frames.h"

namespace flamewire::symbol {

// The symbol that covers an address; size 0: unknown.
struct FunctionRange {
    std::string name;         // demangled
    std::uint64_t start = 0;  // ELF virtual address; for the kernel relative to _text
    std::uint64_t size = 0;
};

// Machine code of a module. If there are no bytes, `problem` states why, in one sentence.
struct ModuleCode {
    std::string bytes;  // may be fewer than requested, at the end of a section
    std::uint64_t address = 0;
    std::uint16_t machine = 0;
    bool big_endian = false;
    CodeKind begins = CodeKind::code;
    std::vector<CodeMark> marks;
    std::string file;             // the file with the bytes
    std::string problem, remedy;  // remedy: what to configure; may be empty

    [[nodiscard]] CodeBytes view() const { return {as_bytes_view(bytes), address, machine, big_endian, begins, marks}; }
};

class Symbolizer {
public:
    explicit Symbolizer(Config config);
    ~Symbolizer();
    Symbolizer(const Symbolizer&) = delete;
    Symbolizer& operator=(const Symbolizer&) = delete;

    // Discards everything that was found under the old configuration. Results of earlier resolve() calls stay valid.
    void set_config(Config config);
    [[nodiscard]] Config config() const;
    // Discards what was found for one module, so that its files are searched again.
    void forget(const ModuleIdentity& module);
    // Increases whenever answers may have become better. A caller with older answers should repeat its lookups.
    [[nodiscard]] std::uint64_t generation() const;

    // Answers in the order of `addresses`. Never fails: unknown addresses have no frames.
    Resolved resolve(const ModuleIdentity& module, std::span<const CodeAddress> addresses);
    ModuleReport report(const ModuleIdentity& module);
    // The functions that contain the addresses.
    std::vector<FunctionRange> functions(const ModuleIdentity& module, std::span<const CodeAddress> addresses);
    // Up to `size` bytes of code at `start`, at most 16 MiB.
    ModuleCode code(const ModuleIdentity& module, std::uint64_t start, std::uint64_t size);

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace flamewire::symbol
