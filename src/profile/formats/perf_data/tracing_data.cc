#include "profile/formats/perf_data/tracing_data.h"

#include <system_error>

#include <algorithm>
#include <bit>
#include <charconv>
#include <string_view>

#include "base/byte_reader.h"

namespace flamewire::profile::perf_data {
namespace {

// A length and that many bytes.
std::string_view block(ByteReader& fields) { return as_text(fields.bytes(fields.u64())); }

// The rest of the first line with that beginning.
std::string_view line_after(std::string_view text, std::string_view beginning) {
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        if (line.starts_with(beginning)) return line.substr(beginning.size());
        text.remove_prefix(std::min(text.size(), line.size() + 1));
    }
    return {};
}

}  // namespace

std::map<std::uint64_t, std::string> tracepoint_names(Bytes tracing_data, const std::set<std::uint64_t>& ids) {
    constexpr std::string_view magic("\x17\x08\x44tracing", 10);
    std::map<std::uint64_t, std::string> names;
    ByteReader head(tracing_data);
    if (as_text(head.bytes(magic.size())) != magic) return names;
    (void)head.text();  // version
    const bool big_endian = head.u8() != 0;
    ByteReader fields(head.rest(), byte_order(big_endian));
    fields.skip(1 + 4);                     // size of a long and of a page
    for (int part = 0; part < 2; ++part) {  // header_page and header_event
        (void)fields.text();
        (void)block(fields);
    }
    for (std::uint32_t left = fields.u32(); left != 0 && fields.ok(); --left) (void)block(fields);  // of ftrace itself
    for (std::uint32_t systems = fields.u32(); systems != 0 && fields.ok(); --systems) {
        const std::string_view system = fields.text();
        for (std::uint32_t left = fields.u32(); left != 0 && fields.ok(); --left) {
            const std::string_view description = block(fields);
            const std::string_view name = line_after(description, "name: "), id = line_after(description, "ID: ");
            std::uint64_t number = 0;
            const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), number);
            if (error != std::errc() || end != id.data() + id.size() || !ids.contains(number)) continue;
            if (name.empty() || std::max(name.size(), system.size()) > max_tracepoint_name_bytes) continue;
            names.try_emplace(number, std::string(system) + ":" + std::string(name));
        }
    }
    return names;
}

}  // namespace flamewire::profile::perf_data
