// Unwind rows for Go code from the Go linker's table (elf/gopclntab.h), which stripped programs have too. x86-64 only;
// other architectures use .debug_frame. The table has more than Go's .debug_frame: which functions have no caller, and
// which switch to another stack. The first instructions of a function show where it keeps the frame pointer. Source:
// Go's src/cmd/internal/obj/x86/obj6.go and src/runtime/asm_amd64.s.
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
    // `file` must outlive the table. nullopt if this is not a Go program, not for x86-64, or its table is damaged. For
    // other programs this costs only a read of their notes.
    static std::optional<GoTable> open(ModuleFile& file, const elf::Header& header);

    // nullopt if the code is not Go code (C code in the same program).
    std::optional<FrameRow> row_at(std::uint64_t address);

    [[nodiscard]] std::size_t size() const { return table_.size(); }  // in functions
    [[nodiscard]] std::optional<CodeRange> function(std::size_t position) const;

private:
    GoTable(ModuleFile& file, elf::GoPclntab table) : file_(&file), table_(std::move(table)) {}

    // Where the function has saved the caller's frame pointer and set its own. nullopt if it does not.
    std::optional<std::uint64_t> body_of(const elf::GoPclntab::Function& function);
    // A few bytes from `address`, not beyond `end`. Valid until the file is read again.
    std::span<const std::byte> code_at(std::uint64_t address, std::uint64_t end);

    ModuleFile* file_;
    elf::GoPclntab table_;
};

}  // namespace flamewire::unwind
