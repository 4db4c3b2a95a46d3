#include "unwind/tables/compressed_section.h"

#include <zstd.h>

#include <algorithm>
#include <cstdint>

#include "base/byte_reader.h"
#include "elf/elf_file.h"
#include "elf/inflate.h"
#include "elf/xz.h"

namespace flamewire::unwind {

namespace {

// Accepts one frame of the current format: the agent omits zstd's decoders for legacy formats. A linker that compresses
// as a stream does not store the size in the frame.
std::optional<std::string> decompress_zstd(Bytes frame, std::size_t size) {
    if (ByteReader(frame, std::endian::little).number(4) != ZSTD_MAGICNUMBER ||
        ZSTD_findFrameCompressedSize(frame.data(), frame.size()) != frame.size())
        return std::nullopt;
    std::string out;
    out.resize_and_overwrite(size, [&](char* data, std::size_t) {
        const std::size_t got = ZSTD_decompress(data, size, frame.data(), frame.size());
        return got == size ? got : std::size_t{0};  // error codes are larger than any size
    });
    return out;
}

}  // namespace

std::optional<std::string> decompress_section(Bytes section, bool is_64, bool big_endian, std::size_t limit) {
    constexpr std::uint64_t by_zlib = 1, by_zstd = 2;  // ELFCOMPRESS_ZLIB, ELFCOMPRESS_ZSTD
    ByteReader in(section, byte_order(big_endian));
    std::uint64_t type = by_zlib, size = 0;
    if (as_text(section).starts_with("ZLIB")) {
        in.skip(4);
        const Bytes bytes = in.rest();
        size = ByteReader(bytes, std::endian::big).number(8);
        in.skip(8);
    } else {
        type = in.number(4);
        if (is_64) in.skip(4);
        size = in.number(is_64 ? 8 : 4);
        in.skip(is_64 ? 8 : 4);  // ch_addralign
    }
    if (!in.ok() || size > limit) return std::nullopt;
    std::optional<std::string> out;
    if (type == by_zlib) out = elf::decompress_zlib(in.rest(), static_cast<std::size_t>(size));
    if (type == by_zstd) out = decompress_zstd(in.rest(), static_cast<std::size_t>(size));
    if (out && out->size() != size) out.reset();
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
