#include "symbol/files/debug_link.h"

#include <zlib.h>

#include "base/byte_reader.h"
#include "base/file.h"

namespace flamewire::symbol {

std::optional<DebugLink> debug_link(const ObjectFile& file) {
    const Bytes bytes = file.section(".gnu_debuglink");
    ByteReader in(bytes);
    DebugLink link;
    link.name = in.c_string();
    in.skip(-in.position() & 3u);
    const Bytes sum = in.bytes(4);
    if (!in.ok() || link.name.empty() || link.name.find('/') != std::string::npos) return std::nullopt;
    for (std::size_t i = 0; i < 4; ++i)
        link.checksum = link.checksum << 8 | std::to_integer<std::uint32_t>(sum[file.header().big_endian ? i : 3 - i]);
    return link;
}

std::optional<std::uint32_t> checksum_of(const std::string& path) {
    const auto fd = open_read(path);
    if (!fd) return std::nullopt;
    constexpr std::size_t step = 1u << 20;
    uLong sum = crc32(0, nullptr, 0);
    for (std::uint64_t offset = 0;; offset += step) {
        const auto part = read_range(fd->get(), offset, step);
        if (!part) return std::nullopt;
        sum = crc32(sum, reinterpret_cast<const Bytef*>(part->data()), static_cast<uInt>(part->size()));
        if (part->size() < step) return static_cast<std::uint32_t>(sum);
    }
}

}  // namespace flamewire::symbol
