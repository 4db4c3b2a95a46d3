#include "profile/formats/perf_data/embedded_symbols.h"

#include <algorithm>

#include "base/byte_reader.h"
#include "profile/formats/perf_data/output.h"

namespace flamewire::profile::perf_data {
namespace {

constexpr std::uint32_t version = 1;

void put(Output& out, std::string_view text) { out.u32(static_cast<std::uint32_t>(text.size())).bytes(text); }

std::string text_of(ByteReader& fields) { return std::string(as_text(fields.bytes(fields.u32()))); }

bool read_function(ByteReader& fields, EmbeddedFunction& function) {
    function.address = fields.u64();
    function.name = text_of(fields);
    function.module = text_of(fields);
    for (std::uint32_t count = fields.u32(); count != 0 && fields.ok(); --count) {
        EmbeddedPlace place;
        place.file = text_of(fields);
        place.line = fields.u32();
        place.module_address = fields.u64();
        place.flags = fields.u32();
        place.kind =
            static_cast<FrameKind>(std::min<std::uint8_t>(fields.u8(), static_cast<std::uint8_t>(FrameKind::unknown)));
        if (fields.ok()) function.places.push_back(std::move(place));
    }
    return fields.ok();
}

}  // namespace

std::pair<const EmbeddedFunction*, std::size_t> EmbeddedSymbols::find(std::uint64_t address) const {
    const auto next = std::ranges::upper_bound(functions, address, {}, &EmbeddedFunction::address);
    if (next == functions.begin()) return {nullptr, 0};
    const EmbeddedFunction& function = *std::prev(next);
    const std::uint64_t place = address - function.address;
    if (place >= function.places.size()) return {nullptr, 0};
    return {&function, static_cast<std::size_t>(place)};
}

std::string encode_embedded_symbols(const EmbeddedSymbols& names) {
    Output out;
    out.u32(version).u32(static_cast<std::uint32_t>(names.events.size()));
    for (const EmbeddedSymbols::Event& event : names.events) {
        put(out, event.name);
        put(out, event.unit);
    }
    out.u32(static_cast<std::uint32_t>(names.functions.size()));
    for (const EmbeddedFunction& function : names.functions) {
        out.u64(function.address);
        put(out, function.name);
        put(out, function.module);
        out.u32(static_cast<std::uint32_t>(function.places.size()));
        for (const EmbeddedPlace& place : function.places) {
            put(out, place.file);
            out.u32(place.line).u64(place.module_address).u32(place.flags).u8(static_cast<std::uint8_t>(place.kind));
        }
    }
    return out.take();
}

bool decode_embedded_symbols(Bytes content, std::endian order, EmbeddedSymbols& names) {
    ByteReader fields(content, order);
    if (fields.u32() != version) return false;
    for (std::uint32_t count = fields.u32(); count != 0 && fields.ok(); --count) {
        EmbeddedSymbols::Event event{text_of(fields), text_of(fields)};
        if (fields.ok()) names.events.push_back(std::move(event));
    }
    for (std::uint32_t count = fields.u32(); count != 0 && fields.ok(); --count) {
        EmbeddedFunction function;
        if (!read_function(fields, function)) break;
        if (!names.functions.empty() && names.functions.back().address >= function.address) return false;
        names.functions.push_back(std::move(function));
    }
    return fields.ok();
}

}  // namespace flamewire::profile::perf_data
