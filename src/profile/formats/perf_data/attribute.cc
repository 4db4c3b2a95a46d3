#include "profile/formats/perf_data/attribute.h"

#include <fmt/format.h>

#include <array>
#include <functional>

#include "base/byte_reader.h"
#include "profile/formats/perf_data/layout.h"

namespace flamewire::profile::perf_data {
namespace {

enum Type : std::uint32_t {
    hardware = 0,
    software = 1,
    tracepoint = tracepoint_type,
    hw_cache = 3,
    raw = 4,
    breakpoint = 5
};

struct Known {
    std::string_view name, unit;
};

// enum perf_hw_id and perf_sw_ids, by number.
constexpr std::array hardware_events{
    Known{"cycles", "cycles"},
    Known{"instructions", "instructions"},
    Known{"cache-references", "references"},
    Known{"cache-misses", "misses"},
    Known{"branches", "branches"},
    Known{"branch-misses", "misses"},
    Known{"bus-cycles", "cycles"},
    Known{"stalled-cycles-frontend", "cycles"},
    Known{"stalled-cycles-backend", "cycles"},
    Known{"ref-cycles", "cycles"},
};
constexpr std::array software_events{
    Known{"cpu-clock", "ns"},
    Known{"task-clock", "ns"},
    Known{"page-faults", "faults"},
    Known{"context-switches", "switches"},
    Known{"cpu-migrations", "migrations"},
    Known{"minor-faults", "faults"},
    Known{"major-faults", "faults"},
    Known{"alignment-faults", "faults"},
    Known{"emulation-faults", "faults"},
    Known{"dummy", "events"},
    Known{"bpf-output", "events"},
    Known{"cgroup-switches", "switches"},
};
constexpr std::array<std::string_view, 7> caches{"L1-dcache", "L1-icache", "LLC", "dTLB", "iTLB", "branch", "node"};
constexpr std::array<std::string_view, 3> operations{"load", "store", "prefetch"};

Known by_numbers(const Attribute& attribute) {
    // The upper half of a generic event's config names the PMU (hybrid CPUs).
    const std::uint64_t number = attribute.config & 0xffffffff;
    if (attribute.type == hardware && number < hardware_events.size()) return hardware_events[number];
    if (attribute.type == software && attribute.config < software_events.size())
        return software_events[attribute.config];
    return {};
}

std::string cache_name(std::uint64_t config) {
    const std::size_t cache = config & 0xff, operation = config >> 8 & 0xff;
    const bool miss = (config >> 16 & 0xff) == 1;
    if (cache >= caches.size() || operation >= operations.size()) return {};
    return fmt::format("{}-{}{}", caches[cache], operations[operation],
                       miss                                     ? "-misses"
                       : operations[operation].ends_with("tch") ? "es"
                                                                : "s");
}

std::string numbered_name(const Attribute& attribute) {
    switch (attribute.type) {
        case hw_cache:
            if (std::string name = cache_name(attribute.config); !name.empty()) return name;
            break;
        case tracepoint:
            return fmt::format("tracepoint-{}", attribute.config);
        case raw:
            return fmt::format("r{:x}", attribute.config);
        case breakpoint:
            return "breakpoint";
        default:
            break;
    }
    return fmt::format("event-{}-{:x}", attribute.type, attribute.config);
}

bool are_modifiers(std::string_view text) { return text.find_first_not_of("ukhGHpPSDIeWbR") == std::string_view::npos; }

constexpr std::uint8_t reversed(std::uint8_t byte) {
    std::uint8_t result = 0;
    for (unsigned bit = 0; bit < 8; ++bit)
        if ((byte >> bit & 1) != 0) result = static_cast<std::uint8_t>(result | 1U << (7 - bit));
    return result;
}

// Reads a word of one-bit fields. Compilers for big-endian machines start at the highest bit of the first byte.
std::uint64_t flag_word(ByteReader& fields, bool big_endian) {
    std::uint64_t flags = 0;
    for (unsigned byte = 0; byte < 8; ++byte) {
        const std::uint8_t value = fields.u8();
        flags |= std::uint64_t{big_endian ? reversed(value) : value} << (8 * byte);
    }
    return flags;
}

}  // namespace

std::uint64_t Attribute::usual_period() const {
    if (!frequency) return period_or_frequency != 0 ? period_or_frequency : 1;
    constexpr std::uint64_t second_ns = 1'000'000'000;
    return unit == "ns" && period_or_frequency != 0 ? second_ns / period_or_frequency : 1;
}

Attribute parse_attribute(Bytes bytes, bool big_endian) {
    ByteReader fields(bytes, byte_order(big_endian));
    Attribute attribute;
    attribute.type = fields.u32();
    attribute.size = fields.u32();
    attribute.config = fields.u64();
    attribute.period_or_frequency = fields.u64();
    attribute.sample_type = fields.u64();
    attribute.read_format = fields.u64();
    const std::uint64_t flags = flag_word(fields, big_endian);
    attribute.inherit = (flags >> 1 & 1) != 0;
    attribute.frequency = (flags >> 10 & 1) != 0;
    attribute.sample_id_all = (flags >> 18 & 1) != 0;
    attribute.exclude_callchain_user = (flags >> 22 & 1) != 0;
    fields.skip(24);  // wakeup, breakpoint type, config1, config2
    attribute.branch_sample_type = fields.u64();
    attribute.sample_regs_user = fields.u64();
    attribute.sample_stack_user = fields.u32();
    fields.skip(4);  // clock
    attribute.sample_regs_intr = fields.u64();
    fields.skip(4);  // AUX watermark
    attribute.sample_max_stack = fields.u16();
    return attribute;
}

std::string plain_event_name(std::string_view name) {
    if (const std::size_t colon = name.rfind(':'); colon != std::string_view::npos && colon + 1 < name.size())
        if (colon != 0 && are_modifiers(name.substr(colon + 1))) name = name.substr(0, colon);
    // PMU/EVENT/MODIFIERS, with only the event's name between the slashes.
    const std::size_t first = name.find('/'), last = name.rfind('/');
    if (first != std::string_view::npos && first != 0 && last != first && are_modifiers(name.substr(last + 1))) {
        const std::string_view event = name.substr(first + 1, last - first - 1);
        if (!event.empty() && event.find_first_of("=,/") == std::string_view::npos) return std::string(event);
    }
    return std::string(name);
}

EventNumbers numbers_of_event(std::string_view name) {
    for (std::size_t i = 0; i < hardware_events.size(); ++i)
        if (hardware_events[i].name == name) return {hardware, i};
    for (std::size_t i = 0; i < software_events.size(); ++i)
        if (software_events[i].name == name) return {software, i};
    // Raw events of all PMUs have lower numbers.
    return {raw, std::uint64_t{1} << 62 | std::hash<std::string_view>()(name) >> 32};
}

void name_event(Attribute& attribute) {
    const Known known = by_numbers(attribute);
    if (attribute.name.empty())
        attribute.name = known.name.empty() ? numbered_name(attribute) : std::string(known.name);
    attribute.unit = known.unit;
    if (attribute.type == hw_cache) attribute.unit = (attribute.config >> 16 & 0xff) == 1 ? "misses" : "references";
    if (attribute.unit.empty() && attribute.name == "cycles") attribute.unit = "cycles";
    if (attribute.unit.empty() && attribute.name == "instructions") attribute.unit = "instructions";
    if (attribute.unit.empty()) attribute.unit = "events";
}

}  // namespace flamewire::profile::perf_data
