// Functions, files, lines and inlined calls of a Go program by the table that its linker writes (elf/gopclntab.h), which
// stripped programs have, too. The table is read where an address is asked for; what was read is kept.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "elf/gopclntab_file.h"
#include "symbol/dwarf/dwarf_index.h"
#include "symbol/files/object_file.h"
#include "symbol/types/string_pool.h"

namespace flamewire::symbol {

class GoFunctions {
public:
    // `file` and `strings` must outlive it. Nothing: not a Go program, or its table cannot be read.
    static std::unique_ptr<GoFunctions> open(const ObjectFile& file, StringPool& strings);

    struct Function {
        std::uint64_t start = 0, end = 0;
        std::string name;  // Go's own spelling, not to be demangled
    };
    [[nodiscard]] std::optional<Function> function(std::uint64_t vaddr) const;
    // Whether inlined calls are known: the program is of Go 1.18 or later, and their tree was found.
    [[nodiscard]] bool has_inlined_calls() const { return function_data_ != nullptr; }

    // Appends the frames at `vaddr`, innermost first; none where no Go function is.
    void find(std::uint64_t vaddr, std::vector<IndexedFrame>& frames);

private:
    GoFunctions(elf::GoPclntab table, StringPool& strings) : table_(std::move(table)), strings_(strings) {}
    void add_line(const elf::GoPclntab::Function& function, std::uint64_t vaddr, IndexedFrame& frame);

    elf::GoPclntab table_;
    StringPool& strings_;
    elf::GoPclntab::Reader function_data_;  // of go:func.*; empty: inlined calls are not known
};

}  // namespace flamewire::symbol
