// The names of an ELF symbol table (or of /proc/kallsyms), sorted by address. If several names have one address, the
// one with the largest size wins. If their sizes are equal, the last in the file wins, as in llvm-symbolizer.
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

    // From .symtab, or from .dynsym if there is none. Omits data outside executable sections, section names and the
    // mapping symbols of Arm and RISC-V ($a, $t, $d, $x). Clears the Thumb bit of Arm function addresses.
    static SymbolTable of_elf(Elf* elf, std::uint16_t machine);
    // The same, plus the functions that only MiniDebugInfo has: those that are not exported.
    static SymbolTable of_file(const ObjectFile& file);

    // A symbol without size extends to the next one, or to `limit` (the end of its section). A local symbol belongs to
    // the file of the last begin_file().
    void add(std::uint64_t address, std::uint64_t size, std::uint64_t limit, std::string_view name, bool local = false);
    // Local symbols that are added from now on belong to the source file `name` (STT_FILE: a bare name).
    void begin_file(std::string_view name) { files_.emplace_back(name); }
    // Call after the last add().
    void sort();

    // The symbol that covers `address`, or none.
    [[nodiscard]] std::uint32_t find(std::uint64_t address) const;
    // What it covers: [address, end). A symbol without a size of its own ends at a later symbol.
    struct Range {
        std::uint64_t address = 0, end = 0;
    };
    [[nodiscard]] Range range(std::uint32_t index) const;
    // The address of the kernel's _text, if the table has it. Kernel addresses are relative to it.
    [[nodiscard]] std::optional<std::uint64_t> kernel_text() const { return kernel_text_; }
    // As in the file, still mangled.
    [[nodiscard]] std::string_view name(std::uint32_t index) const;
    // The source file of a local symbol; empty if unknown.
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
