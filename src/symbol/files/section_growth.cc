#include "symbol/files/section_growth.h"

#include <fmt/format.h>
#include <gelf.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "base/bytes.h"
#include "base/growth.h"

namespace flamewire::symbol {
namespace {

std::uint64_t number(std::string_view bytes, bool big_endian) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i)
        value = value << 8 | static_cast<unsigned char>(bytes[big_endian ? i : bytes.size() - 1 - i]);
    return value;
}

// The unpacked size that a section states; 0 if it is not compressed, or cannot be decompressed.
Result<std::uint64_t> unpacked_bytes(const GElf_Shdr& section, const elf::Header& header,
                                     const elf::ByteSource& source) {
    const bool flagged = (section.sh_flags & SHF_COMPRESSED) != 0;
    // Elf64_Chdr: type, reserved, size, alignment. Elf32_Chdr: type, size, alignment. .zdebug: "ZLIB", size.
    const std::size_t size_at = !flagged || !header.is_64 ? 4 : 8, size_bytes = flagged && !header.is_64 ? 4 : 8;
    const std::string head = TRY(source(section.sh_offset, size_at + size_bytes));
    if (head.size() < size_at + size_bytes) return 0;
    const std::string_view size = std::string_view(head).substr(size_at);
    if (!flagged) return head.starts_with("ZLIB") ? number(size, true) : 0;
    constexpr std::uint64_t by_zlib = 1, by_zstd = 2;
    const std::uint64_t type = number(std::string_view(head).substr(0, 4), header.big_endian);
    return type == by_zlib || type == by_zstd ? number(size, header.big_endian) : 0;
}

std::uint64_t add_up(std::uint64_t a, std::uint64_t b) {
    return a > std::numeric_limits<std::uint64_t>::max() - b ? std::numeric_limits<std::uint64_t>::max() : a + b;
}

}  // namespace

Result<bool> check_section_growth(Elf* elf, const elf::Header& header, const elf::ByteSource& source,
                                  std::uint64_t file_bytes, const std::string& path) {
    std::size_t names = 0;
    const bool named = elf_getshdrstrndx(elf, &names) == 0;
    std::uint64_t packed = 0, unpacked = 0;
    Elf_Scn* section = nullptr;
    while ((section = elf_nextscn(elf, section)) != nullptr) {
        GElf_Shdr found;
        if (gelf_getshdr(section, &found) == nullptr || found.sh_type == SHT_NOBITS) continue;
        if ((found.sh_flags & SHF_COMPRESSED) == 0) {
            const char* name = named ? elf_strptr(elf, names, found.sh_name) : nullptr;
            if (name == nullptr || !std::string_view(name).starts_with(".zdebug")) continue;
        }
        const std::uint64_t bytes = TRY(unpacked_bytes(found, header, source));
        if (bytes == 0) continue;
        unpacked = add_up(unpacked, bytes);
        // Sections may share bytes of the file, so all of them together have at most the file's size.
        packed = std::min(add_up(packed, found.sh_size), file_bytes);
    }
    const std::uint64_t limit = growth_limit(packed, max_unpacked_section_bytes);
    if (unpacked <= limit) return true;
    return fail(
        ErrorCode::too_large,
        fmt::format("{} has compressed sections of {} MiB that would unpack to {} MiB; at most {} MiB of such a "
                    "file are unpacked",
                    path, packed >> 20, unpacked >> 20, limit >> 20));
}

}  // namespace flamewire::symbol
