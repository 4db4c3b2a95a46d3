#include "unwind/compressed_section.h"

#include <zstd.h>

#include <algorithm>
#include <cstdint>

#include "elf/elf_file.h"
#include "elf/xz.h"
#include "unwind/dwarf_cursor.h"

namespace flamewire::unwind {

std::optional<std::string> decompress_section(Bytes section, bool is_64, bool big_endian, std::size_t limit) {
    constexpr std::uint64_t compressed_with_zstd = 2;  // ELFCOMPRESS_ZSTD
    DwarfCursor in(section, big_endian);
    const std::uint64_t type = in.fixed(4);
    if (is_64) in.skip(4);
    const std::uint64_t size = in.fixed(is_64 ? 8 : 4);
    in.skip(is_64 ? 8 : 4);  // ch_addralign
    if (!in.ok() || type != compressed_with_zstd || size > limit) return std::nullopt;
    const Bytes frame = in.rest();
    // One frame of today's format: the agent leaves zstd's readers of older ones out. A linker that compresses in one
    // stream does not state its size in the frame.
    if (DwarfCursor(frame, false).fixed(4) != ZSTD_MAGICNUMBER ||
        ZSTD_findFrameCompressedSize(frame.data(), frame.size()) != frame.size())
        return std::nullopt;
    std::string out;
    out.resize_and_overwrite(static_cast<std::size_t>(size), [&](char* data, std::size_t) {
        const std::size_t got = ZSTD_decompress(data, static_cast<std::size_t>(size), frame.data(), frame.size());
        return got == size ? got : std::size_t{0};  // an error is a larger number than any size
    });
    if (out.size() != size) return std::nullopt;
    return out;
}

std::optional<std::string> mini_debug_frame(Bytes section, std::size_t limit) {
    constexpr std::uint32_t nobits = 8;
    auto plain = elf::decompress_xz(section, limit);
    if (!plain) return std::nullopt;
    const elf::ByteSource source = elf::source_of_bytes(as_bytes_view(*plain));
    const auto header = elf::read_header(source);
    if (!header) return std::nullopt;
    const auto sections = elf::read_sections(source, *header);
    if (!sections) return std::nullopt;
    const auto frames = std::ranges::find(*sections, ".debug_frame", &elf::Section::name);
    if (frames == sections->end() || frames->type == nobits || frames->offset > plain->size() ||
        frames->size > plain->size() - frames->offset)
        return std::nullopt;
    return plain->substr(static_cast<std::size_t>(frames->offset), static_cast<std::size_t>(frames->size));
}

}  // namespace flamewire::unwind
