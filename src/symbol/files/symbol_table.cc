#include "symbol/files/symbol_table.h"

#include <gelf.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <tuple>

namespace flamewire::symbol {
namespace {

struct SectionEnd {
    std::uint64_t begin = 0, end = 0;
    bool code = false;
};

// By section index: its end, and whether it holds code.
std::vector<SectionEnd> section_ends(Elf* elf) {
    std::vector<SectionEnd> ends(1);
    Elf_Scn* section = nullptr;
    while ((section = elf_nextscn(elf, section)) != nullptr) {
        GElf_Shdr header;
        SectionEnd end;
        if (gelf_getshdr(section, &header) != nullptr) {
            end.code = (header.sh_flags & SHF_ALLOC) != 0 && (header.sh_flags & SHF_EXECINSTR) != 0;
            end.begin = header.sh_addr;
            end.end = header.sh_addr + header.sh_size;
        }
        ends.push_back(end);
    }
    return ends;
}

Elf_Scn* section_of_type(Elf* elf, std::uint32_t type, GElf_Shdr& header) {
    Elf_Scn* section = nullptr;
    while ((section = elf_nextscn(elf, section)) != nullptr)
        if (gelf_getshdr(section, &header) != nullptr && header.sh_type == type) return section;
    return nullptr;
}

bool may_name_code(unsigned char info) {
    const int type = GELF_ST_TYPE(info);
    return type == STT_FUNC || type == STT_NOTYPE || type == STT_OBJECT || type == STT_GNU_IFUNC;
}

// $a $t $d $x, alone or followed by a dot or (RISC-V) an ISA string. They mark code and data, and are not functions.
bool is_mapping_symbol(std::string_view name, std::uint16_t machine) {
    if (machine != EM_ARM && machine != EM_AARCH64 && machine != EM_RISCV) return false;
    if (name.size() < 2 || name[0] != '$' || std::strchr("atdx", name[1]) == nullptr) return false;
    return name.size() == 2 || name[2] == '.' || (machine == EM_RISCV && name.starts_with("$xrv"));
}

}  // namespace

SymbolTable SymbolTable::of_elf(Elf* elf, std::uint16_t machine) {
    SymbolTable table;
    table.add_elf(elf, machine);
    table.sort();
    return table;
}

SymbolTable SymbolTable::of_file(const ObjectFile& file) {
    SymbolTable table;
    table.add_elf(file.elf(), file.header().machine);
    if (const ObjectFile* mini = file.mini(); mini != nullptr) table.add_elf(mini->elf(), file.header().machine);
    table.sort();
    return table;
}

void SymbolTable::add_elf(Elf* elf, std::uint16_t machine) {
    GElf_Shdr header;
    Elf_Scn* section = section_of_type(elf, SHT_SYMTAB, header);
    if (section == nullptr) section = section_of_type(elf, SHT_DYNSYM, header);
    Elf_Data* data = section == nullptr ? nullptr : elf_getdata(section, nullptr);
    if (data == nullptr || header.sh_entsize == 0) return;
    const std::vector<SectionEnd> ends = section_ends(elf);
    GElf_Ehdr file_header;
    const bool relocatable = gelf_getehdr(elf, &file_header) != nullptr && file_header.e_type == ET_REL;
    const std::size_t count = std::min<std::size_t>(data->d_size / header.sh_entsize, std::numeric_limits<int>::max());
    for (std::size_t i = 1; i < count; ++i) {
        GElf_Sym symbol;
        if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) break;
        if (GELF_ST_TYPE(symbol.st_info) == STT_FILE)
            if (const char* file = elf_strptr(elf, header.sh_link, symbol.st_name); file != nullptr) begin_file(file);
        // An index of 0xff00 or more is in another table. Files with so many sections are not linked programs.
        if (!may_name_code(symbol.st_info) || symbol.st_shndx >= ends.size() || !ends[symbol.st_shndx].code) continue;
        const char* name = elf_strptr(elf, header.sh_link, symbol.st_name);
        if (name == nullptr || *name == '\0' || is_mapping_symbol(name, machine)) continue;
        const bool thumb = machine == EM_ARM && GELF_ST_TYPE(symbol.st_info) == STT_FUNC;
        // In a relocatable file, values are relative to their sections.
        if (relocatable) symbol.st_value += ends[symbol.st_shndx].begin;
        add(symbol.st_value & ~std::uint64_t{thumb ? 1u : 0u}, symbol.st_size, ends[symbol.st_shndx].end, name,
            GELF_ST_BIND(symbol.st_info) == STB_LOCAL);
    }
}

void SymbolTable::add(std::uint64_t address, std::uint64_t size, std::uint64_t limit, std::string_view name,
                      bool local) {
    const std::uint64_t last = std::numeric_limits<std::uint64_t>::max();
    const std::uint64_t end = size == 0 ? limit : (size > last - address ? last : address + size);
    const std::size_t file = local ? files_.size() - 1 : 0;
    symbols_.push_back(
        {address, size, end, names_.size(), static_cast<std::uint32_t>(name.size()), static_cast<std::uint32_t>(file)});
    names_ += name;
    if (name == "_text") kernel_text_ = address;
}

void SymbolTable::sort() {
    std::sort(symbols_.begin(), symbols_.end(), [](const Symbol& a, const Symbol& b) {
        // Names are stored in the order of add(), so the last key preserves that order.
        return std::tie(a.address, a.size, a.name_offset) < std::tie(b.address, b.size, b.name_offset);
    });
    std::size_t kept = 0;
    for (std::size_t i = 0; i < symbols_.size(); ++i)
        if (i + 1 == symbols_.size() || symbols_[i + 1].address != symbols_[i].address) symbols_[kept++] = symbols_[i];
    symbols_.resize(kept);
}

std::uint32_t SymbolTable::find(std::uint64_t address) const {
    const auto after =
        std::upper_bound(symbols_.begin(), symbols_.end(), address,
                         [](std::uint64_t value, const Symbol& symbol) { return value < symbol.address; });
    if (after == symbols_.begin() || address >= std::prev(after)->end) return none;
    return static_cast<std::uint32_t>(after - symbols_.begin() - 1);
}

SymbolTable::Range SymbolTable::range(std::uint32_t index) const {
    const Symbol& symbol = symbols_[index];
    std::uint64_t end = symbol.end;
    if (symbol.size == 0 && index + 1 < symbols_.size()) end = std::min(end, symbols_[index + 1].address);
    return {symbol.address, std::max(end, symbol.address)};
}

std::string_view SymbolTable::name(std::uint32_t index) const {
    const Symbol& symbol = symbols_[index];
    return std::string_view(names_).substr(static_cast<std::size_t>(symbol.name_offset), symbol.name_size);
}

}  // namespace flamewire::symbol
