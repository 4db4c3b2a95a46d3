// Finds functions by name or by address, and variables by name, in the symbol tables of an ELF file: .symtab, .dynsym and, in a file without
// .symtab, the one in .gnu_debugdata (MiniDebugInfo). Reads the tables in blocks, so memory does not grow with the
// file. 32- and 64-bit, both byte orders. For linked files: in relocatable files, symbols have no addresses. Source:
// System V gABI, chapter 4; ELF for the Arm Architecture, section 5.5.3 (Thumb bit).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "elf/elf_file.h"

namespace flamewire::elf {

enum class SymbolKind : std::uint8_t {
    function,  // STT_FUNC, STT_GNU_IFUNC
    object,    // STT_OBJECT: a variable that is not thread-local
};

// Also of a variable, which is neither thumb nor ifunc.
struct FunctionSymbol {
    std::string name;           // still mangled, without a symbol version
    std::uint64_t address = 0;  // ELF virtual address, without the Thumb bit
    std::uint64_t size = 0;     // in bytes; 0 if the symbol has none (assembly)
    bool thumb = false;         // Arm: the instructions are Thumb
    bool ifunc = false;         // STT_GNU_IFUNC: this is the resolver, which returns the function's address
};

// All defined functions, or other symbols of that kind, whose names `wanted` accepts, sorted by address, then name; each pair of these once. Omits
// names longer than 64 KiB, and a .gnu_debugdata that is damaged or larger than 16 MiB unpacked.
// too_large: more than `limit` of them, or tables beyond any real size. invalid: a table is not inside the file.
Result<std::vector<FunctionSymbol>> find_functions(const ByteSource& source, const Header& header,
                                                   const std::vector<Section>& sections,
                                                   const std::function<bool(std::string_view name)>& wanted,
                                                   std::size_t limit, SymbolKind kind = SymbolKind::function);

// The function that covers `address`. Of several, the one that starts last; of these, the largest; of these, the first
// by name. A function without size covers its first byte only. Errors are those of find_functions().
Result<std::optional<FunctionSymbol>> function_at(const ByteSource& source, const Header& header,
                                                  const std::vector<Section>& sections, std::uint64_t address);

}  // namespace flamewire::elf
