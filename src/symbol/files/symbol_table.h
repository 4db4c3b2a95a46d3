// The names of an ELF symbol table (or of /proc/kallsyms) sorted by address. Of several names for one address the one
// with the largest size wins, and of equal ones the last in the file, as llvm-symbolizer chooses.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "symbol/files/object_file.h"

namespace flamewire::symbol {

class SymbolTable {
public:
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    // .symtab, or .dynsym where there is none. Data outside executable sections, section names and the mapping symbols
    // of Arm and RISC-V ($a, $t, $d, $x) are left out; the Thumb bit of Arm function addresses is cleared.
    static SymbolTable of_elf(Elf* elf, std::uint16_t machine);
    // That, and the functions that MiniDebugInfo has besides: those that are not exported.
    static SymbolTable of_file(const ObjectFile& file);

    // A symbol without size reaches to the next one, or to `limit` (the end of its section). A local one is of the file
    // named last.
    void add(std::uint64_t address, std::uint64_t size, std::uint64_t limit, std::string_view name, bool local = false);
    // Local symbols that are added from now on are of the source file `name` (STT_FILE: a bare name).
    void begin_file(std::string_view name) { files_.emplace_back(name); }
    // Call after the last add().
    void sort();

    // The symbol that covers `address`, or none.
    [[nodiscard]] std::uint32_t find(std::uint64_t address) const;
    // What it covers: [address, end), without what a later symbol takes when it has no size of its own.
    struct Range {
        std::uint64_t address = 0, end = 0;
    };
    [[nodiscard]] Range range(std::uint32_t index) const;
    // Where the kernel's _text is, when the table has it: kernel addresses are relative to it.
    [[nodiscard]] std::optional<std::uint64_t> kernel_text() const { return kernel_text_; }
    // As in the file, mangled.
    [[nodiscard]] std::string_view name(std::uint32_t index) const;
    // The source file of a local symbol; empty when unknown.
    [[nodiscard]] std::string_view file(std::uint32_t index) const { return files_[symbols_[index].file]; }
    [[nodiscard]] std::size_t size() const { return symbols_.size(); }

private:
    void add_elf(Elf* elf, std::uint16_t machine);

    struct Symbol {
        std::uint64_t address = 0, size = 0, end = 0;
        std::uint64_t name_offset = 0;
        std::uint32_t name_size = 0;
        std::uint32_t file = 0;  // index into files_
    };

    std::vector<Symbol> symbols_;
    std::string names_;
    std::vector<std::string> files_ = {""};
    std::optional<std::uint64_t> kernel_text_;
};

}  // namespace flamewire::symbol
