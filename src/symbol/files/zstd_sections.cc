#include "symbol/files/zstd_sections.h"

#include <gelf.h>
#include <zstd.h>

#include <memory>
#include <vector>

#include "base/growth.h"
#include "symbol/files/section_growth.h"

namespace flamewire::symbol {
namespace {

constexpr std::uint32_t compressed_with_zstd = 2;  // ELFCOMPRESS_ZSTD, not yet in libelf's header

struct Packed {
    std::size_t index = 0;
    GElf_Chdr header{};
    GElf_Shdr section{};
};

std::vector<Packed> zstd_sections(Elf* elf) {
    std::vector<Packed> found;
    Elf_Scn* section = nullptr;
    while ((section = elf_nextscn(elf, section)) != nullptr) {
        Packed packed;
        packed.index = elf_ndxscn(section);
        if (gelf_getshdr(section, &packed.section) != nullptr && (packed.section.sh_flags & SHF_COMPRESSED) != 0 &&
            packed.section.sh_type != SHT_NOBITS && gelf_getchdr(section, &packed.header) != nullptr &&
            packed.header.ch_type == compressed_with_zstd)
            found.push_back(packed);
    }
    return found;
}

using ElfHandle = std::unique_ptr<Elf, decltype(&elf_end)>;

}  // namespace

bool has_zstd_sections(Elf* elf) { return !zstd_sections(elf).empty(); }

Result<Elf*> open_decompressed(std::string& image) {
    std::vector<Packed> sections;
    std::size_t header_size = 0;
    {
        const ElfHandle packed(elf_memory(image.data(), image.size()), &elf_end);
        if (!packed) return fail(ErrorCode::invalid, "the file cannot be read as ELF");
        sections = zstd_sections(packed.get());
        header_size = gelf_getclass(packed.get()) == ELFCLASS64 ? sizeof(Elf64_Chdr) : sizeof(Elf32_Chdr);
    }
    const std::size_t file_size = image.size();
    // The file may have changed since check_section_growth(), because others may write to it.
    const std::uint64_t limit = file_size + growth_limit(file_size, max_unpacked_section_bytes);
    std::uint64_t total = file_size;
    for (const Packed& packed : sections) {
        const GElf_Shdr& section = packed.section;
        const bool inside = section.sh_offset <= file_size && section.sh_size <= file_size - section.sh_offset &&
                            section.sh_size > header_size;
        if (!inside || packed.header.ch_size > limit - total)
            return fail(ErrorCode::invalid, "a compressed debug section has an impossible size");
        total += packed.header.ch_size;
    }
    image.resize(static_cast<std::size_t>(total));
    std::size_t end = file_size;
    for (Packed& packed : sections) {
        const char* content = image.data() + packed.section.sh_offset + header_size;
        const std::size_t size = static_cast<std::size_t>(packed.header.ch_size);
        const std::size_t got =
            ZSTD_decompress(image.data() + end, size, content, packed.section.sh_size - header_size);
        if (ZSTD_isError(got) != 0 || got != size)
            return fail(ErrorCode::invalid, "a compressed debug section is damaged");
        packed.section.sh_offset = end;
        packed.section.sh_size = size;
        packed.section.sh_addralign = packed.header.ch_addralign;
        packed.section.sh_flags &= ~GElf_Xword{SHF_COMPRESSED};
        end += size;
    }
    ElfHandle plain(elf_memory(image.data(), image.size()), &elf_end);
    for (Packed& packed : sections)
        if (Elf_Scn* section = plain ? elf_getscn(plain.get(), packed.index) : nullptr;
            section == nullptr || gelf_update_shdr(section, &packed.section) == 0)
            return fail(ErrorCode::invalid, "the file cannot be read as ELF");
    return plain.release();
}

}  // namespace flamewire::symbol
