#include "symbol/files/plt.h"

#include <gelf.h>

#include <limits>
#include <optional>
#include <string>
#include <unordered_map>

namespace flamewire::symbol {
namespace {

// GOT slot -> name of the function that the loader stores there.
using Slots = std::unordered_map<std::uint64_t, std::string>;

void read_slots(Elf* elf, Elf_Scn* section, const GElf_Shdr& header, Slots& slots) {
    Elf_Data* data = elf_getdata(section, nullptr);
    Elf_Scn* symbols = elf_getscn(elf, header.sh_link);
    Elf_Data* symbol_data = symbols == nullptr ? nullptr : elf_getdata(symbols, nullptr);
    GElf_Shdr symbol_header;
    if (data == nullptr || symbol_data == nullptr || header.sh_entsize == 0 ||
        gelf_getshdr(symbols, &symbol_header) == nullptr)
        return;
    const std::size_t count = std::min<std::size_t>(data->d_size / header.sh_entsize, std::numeric_limits<int>::max());
    for (std::size_t i = 0; i < count; ++i) {
        GElf_Rela relocation;
        if (gelf_getrela(data, static_cast<int>(i), &relocation) == nullptr) break;
        const std::uint64_t type = GELF_R_TYPE(relocation.r_info), symbol = GELF_R_SYM(relocation.r_info);
        const bool slot = type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT || type == R_AARCH64_JUMP_SLOT ||
                          type == R_AARCH64_GLOB_DAT;
        GElf_Sym entry;
        if (!slot || symbol == 0 || symbol > std::numeric_limits<int>::max() ||
            gelf_getsym(symbol_data, static_cast<int>(symbol), &entry) == nullptr)
            continue;
        const char* name = elf_strptr(elf, symbol_header.sh_link, entry.st_name);
        if (name != nullptr && *name != '\0') slots.emplace(relocation.r_offset, name);
    }
}

std::uint32_t little_endian_word(Bytes code, std::size_t at) {
    std::uint32_t word = 0;
    for (std::size_t i = 4; i-- > 0;) word = word << 8 | std::to_integer<std::uint32_t>(code[at + i]);
    return word;
}

struct Stub {
    std::uint64_t slot = 0;  // address of the GOT slot it jumps through
    std::size_t size = 0;    // bytes from its start
};

// `jmp *disp32(%rip)`, anywhere in a stub of `size` bytes: endbr64 and bnd may come before it.
std::optional<Stub> x86_stub(Bytes code, std::uint64_t address, std::size_t size) {
    for (std::size_t i = 0; i + 6 <= std::min(size, code.size()); ++i) {
        if (code[i] != std::byte{0xff} || code[i + 1] != std::byte{0x25}) continue;
        const auto displacement = static_cast<std::int32_t>(little_endian_word(code, i + 2));
        return Stub{address + i + 6 + static_cast<std::uint64_t>(std::int64_t{displacement}), size};
    }
    return std::nullopt;
}

// `adrp x16, page; ldr x17, [x16, #offset]; add …; br x17`.
std::optional<Stub> aarch64_stub(Bytes code, std::uint64_t address) {
    if (code.size() < 16) return std::nullopt;
    const std::uint32_t adrp = little_endian_word(code, 0), ldr = little_endian_word(code, 4);
    if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211) return std::nullopt;
    const std::uint64_t pages = std::uint64_t{adrp >> 5 & 0x7ffff} << 2 | (adrp >> 29 & 3);
    const std::uint64_t signed_pages = pages ^ (pages & 0x100000 ? ~std::uint64_t{0x1fffff} : 0);
    return Stub{(address & ~std::uint64_t{0xfff}) + (signed_pages << 12) + std::uint64_t{ldr >> 10 & 0xfff} * 8, 16};
}

void add_stubs(Bytes code, const GElf_Shdr& header, std::uint16_t machine, const Slots& slots, SymbolTable& table) {
    const bool x86 = machine == EM_X86_64;
    const std::size_t size = !x86 ? 4 : header.sh_entsize == 8 ? 8 : 16;
    for (std::size_t at = 0; at < code.size();) {
        const std::uint64_t address = header.sh_addr + at;
        const Bytes rest = code.subspan(at);
        const std::optional<Stub> stub = x86 ? x86_stub(rest, address, size) : aarch64_stub(rest, address);
        at += stub ? stub->size : size;
        if (!stub) continue;
        if (const auto name = slots.find(stub->slot); name != slots.end())
            table.add(address, stub->size, header.sh_addr + header.sh_size, name->second + "@plt");
    }
}

}  // namespace

void add_plt_symbols(Elf* elf, std::uint16_t machine, SymbolTable& table) {
    if (machine != EM_X86_64 && machine != EM_AARCH64) return;
    std::size_t names = 0;
    if (elf_getshdrstrndx(elf, &names) != 0) return;
    Slots slots;
    GElf_Shdr header;
    for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;)
        if (gelf_getshdr(section, &header) != nullptr && header.sh_type == SHT_RELA &&
            (header.sh_flags & SHF_ALLOC) != 0)
            read_slots(elf, section, header, slots);
    for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
        if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_PROGBITS) continue;
        const char* name = elf_strptr(elf, names, header.sh_name);
        if (name == nullptr || !std::string_view(name).starts_with(".plt")) continue;
        const Elf_Data* data = elf_rawdata(section, nullptr);
        if (data == nullptr || data->d_buf == nullptr) continue;
        add_stubs(Bytes(static_cast<const std::byte*>(data->d_buf), data->d_size), header, machine, slots, table);
    }
}

}  // namespace flamewire::symbol
