#include "profile/formats/json_slabs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <string>

namespace flamewire::profile {
namespace {

constexpr std::string_view magic{"\xdc\xdfJSLB\x01\x00", 8};
constexpr std::size_t header_bytes = 20, entry_bytes = 12, piece_bytes = std::size_t{256} << 10;
constexpr std::uint32_t known_version = 1;

std::uint64_t little_endian(std::string_view bytes) {
    std::uint64_t number = 0;
    for (std::size_t i = bytes.size(); i-- > 0;) number = number << 8 | static_cast<unsigned char>(bytes[i]);
    return number;
}

std::uint32_t word(std::string_view bytes, std::size_t at) {
    return static_cast<std::uint32_t>(little_endian(bytes.substr(at, 4)));
}

std::size_t element_bytes(JsonSlab::Type type) {
    using enum JsonSlab::Type;
    switch (type) {
        case int16:
        case uint16: return 2;
        case int32:
        case uint32:
        case float32: return 4;
        case float64:
        case int64:
        case uint64: return 8;
        default: return 1;
    }
}

double number_of(JsonSlab::Type type, std::string_view bytes) {
    using enum JsonSlab::Type;
    const std::uint64_t raw = little_endian(bytes);
    switch (type) {
        case int8: return static_cast<std::int8_t>(raw);
        case int16: return static_cast<std::int16_t>(raw);
        case int32: return static_cast<std::int32_t>(raw);
        case int64: return static_cast<double>(static_cast<std::int64_t>(raw));
        case float32: return std::bit_cast<float>(static_cast<std::uint32_t>(raw));
        case float64: return std::bit_cast<double>(raw);
        default: return static_cast<double>(raw);
    }
}

}  // namespace

bool JsonSlabs::recognises(std::string_view beginning) { return beginning.starts_with(magic); }

Result<JsonSlabs> JsonSlabs::open(ImportSource& source) {
    JsonSlabs slabs;
    std::string header(header_bytes, '\0');
    if (TRY(source.read_at(0, header)) < header_bytes) return slabs;
    if (const std::uint32_t version = word(header, 8); version != known_version)
        return fail(ErrorCode::invalid,
                    fmt::format("the JSLB file is of version {}, which is not known here", version));
    const std::uint64_t count = word(header, 12);
    slabs.root_ = word(header, 16);
    // Reject counts that the file cannot hold before allocating anything.
    if (count > (source.size() - header_bytes) / entry_bytes) return slabs;
    std::string table(static_cast<std::size_t>(count) * entry_bytes, '\0');
    if (TRY(source.read_at(header_bytes, table)) < table.size()) return slabs;
    slabs.slabs_.reserve(static_cast<std::size_t>(count));
    slabs.whole_ = true;
    for (std::size_t at = 0; at < table.size(); at += entry_bytes) {
        const std::uint32_t type = word(table, at);
        if (type > static_cast<std::uint32_t>(JsonSlab::Type::json))
            return fail(ErrorCode::invalid,
                        fmt::format("the JSLB file has a slab of type {}, which is not known here", type));
        const JsonSlab& slab =
            slabs.slabs_.emplace_back(static_cast<JsonSlab::Type>(type), word(table, at + 4), word(table, at + 8));
        if (slab.offset + slab.size > source.size()) slabs.whole_ = false;
    }
    return slabs;
}

Result<bool> read_numbers(ImportSource& source, const JsonSlab& slab, const std::function<bool(double)>& each) {
    const std::size_t step = element_bytes(slab.type);
    std::string piece(static_cast<std::size_t>(std::min<std::uint64_t>(piece_bytes, slab.size / step * step)), '\0');
    for (std::uint64_t done = 0; done + step <= slab.size;) {
        const std::size_t wanted = static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), slab.size - done));
        const std::size_t got = TRY(source.read_at(slab.offset + done, std::span(piece).first(wanted))) / step * step;
        if (got == 0) return false;
        for (std::size_t at = 0; at < got; at += step)
            if (!each(number_of(slab.type, std::string_view(piece).substr(at, step)))) return false;
        done += got;
    }
    return true;
}

}  // namespace flamewire::profile
