#include "symbol/files/code_marks.h"

#include <gelf.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

namespace flamewire::symbol {
namespace {

std::optional<CodeKind> kind_of(std::string_view name) {
    if (name.size() < 2 || name[0] != '$' || (name.size() > 2 && name[2] != '.')) return std::nullopt;
    switch (name[1]) {
        case 'a':
        case 'x': return CodeKind::code;
        case 't': return CodeKind::thumb;
        case 'd': return CodeKind::data;
        default: return std::nullopt;
    }
}

Elf_Scn* table_of(Elf* elf, GElf_Shdr& header) {
    for (const std::uint32_t type : {std::uint32_t{SHT_SYMTAB}, std::uint32_t{SHT_DYNSYM}}) {
        Elf_Scn* section = nullptr;
        while ((section = elf_nextscn(elf, section)) != nullptr)
            if (gelf_getshdr(section, &header) != nullptr && header.sh_type == type) return section;
    }
    return nullptr;
}

}  // namespace

std::vector<CodeMark> code_marks_of(Elf* elf, std::uint16_t machine) {
    std::vector<CodeMark> marks, functions;
    GElf_Shdr header;
    Elf_Scn* section = table_of(elf, header);
    Elf_Data* data = section == nullptr ? nullptr : elf_getdata(section, nullptr);
    if (data == nullptr || header.sh_entsize == 0) return marks;
    const std::size_t count = std::min<std::size_t>(data->d_size / header.sh_entsize, std::numeric_limits<int>::max());
    for (std::size_t i = 1; i < count; ++i) {
        GElf_Sym symbol;
        if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) break;
        if (symbol.st_shndx == SHN_UNDEF) continue;
        const int type = GELF_ST_TYPE(symbol.st_info);
        if (machine == EM_ARM && type == STT_FUNC)
            functions.push_back(
                {symbol.st_value & ~std::uint64_t{1}, (symbol.st_value & 1) != 0 ? CodeKind::thumb : CodeKind::code});
        if (type != STT_NOTYPE) continue;
        const char* name = elf_strptr(elf, header.sh_link, symbol.st_name);
        if (name == nullptr) continue;
        if (const auto kind = kind_of(name)) marks.push_back({symbol.st_value, *kind});
    }
    if (marks.empty()) marks = std::move(functions);
    // If two marks have one address, the last one wins. Code comes last, because the data piece is then empty.
    std::ranges::sort(marks, {},
                      [](const CodeMark& mark) { return std::pair(mark.address, mark.kind != CodeKind::data); });
    return marks;
}

}  // namespace flamewire::symbol
