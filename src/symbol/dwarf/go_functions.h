// Functions, files, lines and inlined calls of a Go program, from the table that the Go linker writes
// (elf/gopclntab.h). Stripped programs have it too. The table is read on demand, and what was read is cached.
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
    // `file` and `strings` must outlive the object. Null: not a Go program, or its table cannot be read.
    static std::unique_ptr<GoFunctions> open(const ObjectFile& file, StringPool& strings);

    struct Function {
        std::uint64_t start = 0, end = 0;
        std::string name;  // in Go's own spelling; do not demangle it
    };
    [[nodiscard]] std::optional<Function> function(std::uint64_t vaddr) const;
    // Whether inlined calls are known: the program is from Go 1.18 or later, and its inline tree was found.
    [[nodiscard]] bool has_inlined_calls() const { return function_data_ != nullptr; }

    // Appends the frames at `vaddr`, innermost first; none if there is no Go function.
    void find(std::uint64_t vaddr, std::vector<IndexedFrame>& frames);

private:
    GoFunctions(elf::GoPclntab table, StringPool& strings) : table_(std::move(table)), strings_(strings) {}
    void add_line(const elf::GoPclntab::Function& function, std::uint64_t vaddr, IndexedFrame& frame);

    elf::GoPclntab table_;
    StringPool& strings_;
    elf::GoPclntab::Reader function_data_;  // reads go:func.*; empty: inlined calls are not known
};

}  // namespace flamewire::symbol
