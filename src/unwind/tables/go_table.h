// How frames of Go code are left, by the table of Go's linker (elf/gopclntab.h), which stripped programs have too. x86-64
// only; elsewhere .debug_frame has to do. It says more than Go's .debug_frame does: which functions nobody called, and
// which set the stack pointer to another stack. Where the frame pointer is kept is read from a function's first
// instructions. Source: src/cmd/internal/obj/x86/obj6.go and src/runtime/asm_amd64.s of Go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "elf/elf_file.h"
#include "elf/gopclntab.h"
#include "unwind/frame/frame_row.h"
#include "unwind/tables/module_file.h"
#include "unwind/tables/module_tables.h"

namespace flamewire::unwind {

class GoTable {
public:
    // `file` outlives it. Nothing: not a Go program, for another machine than x86-64, or its table is damaged. A file
    // that is not of Go costs the read of its notes.
    static std::optional<GoTable> open(ModuleFile& file, const elf::Header& header);

    // Nothing where the code is not Go's (that of C in the same program).
    std::optional<FrameRow> row_at(std::uint64_t address);

    [[nodiscard]] std::size_t size() const { return table_.size(); }  // in functions
    [[nodiscard]] std::optional<CodeRange> function(std::size_t position) const;

private:
    GoTable(ModuleFile& file, elf::GoPclntab table) : file_(&file), table_(std::move(table)) {}

    // Where the function has saved its caller's frame pointer and set its own; nothing when it does neither.
    std::optional<std::uint64_t> body_of(const elf::GoPclntab::Function& function);
    // A few bytes from `address` on, none behind `end`. Valid until the file is read again.
    std::span<const std::byte> code_at(std::uint64_t address, std::uint64_t end);

    ModuleFile* file_;
    elf::GoPclntab table_;
};

}  // namespace flamewire::unwind
