#include "profile/formats/perf_data/recorded_event.h"

#include <fmt/format.h>

#include <array>
#include <functional>

#include "perf/abi.h"

namespace flamewire::profile::perf_data {
namespace {

enum Type : std::uint32_t {
    hardware = 0,
    software = 1,
    tracepoint = perf::tracepoint_type,
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

Known by_numbers(const RecordedEvent& event) {
    // The upper half of a generic event's config names the PMU (hybrid CPUs).
    const std::uint64_t number = event.config & 0xffffffff;
    if (event.type == hardware && number < hardware_events.size()) return hardware_events[number];
    if (event.type == software && event.config < software_events.size()) return software_events[event.config];
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

std::string numbered_name(const RecordedEvent& event) {
    switch (event.type) {
        case hw_cache:
            if (std::string name = cache_name(event.config); !name.empty()) return name;
            break;
        case tracepoint: return fmt::format("tracepoint-{}", event.config);
        case raw: return fmt::format("r{:x}", event.config);
        case breakpoint: return "breakpoint";
        default: break;
    }
    return fmt::format("event-{}-{:x}", event.type, event.config);
}

bool are_modifiers(std::string_view text) { return text.find_first_not_of("ukhGHpPSDIeWbR") == std::string_view::npos; }

}  // namespace

std::uint64_t RecordedEvent::usual_period() const {
    if (!frequency) return period_or_frequency != 0 ? period_or_frequency : 1;
    constexpr std::uint64_t second_ns = 1'000'000'000;
    return unit == "ns" && period_or_frequency != 0 ? second_ns / period_or_frequency : 1;
}

perf::RecordFormat RecordedEvent::format() const {
    return record_format(samples(perf::sample::period) ? 1 : usual_period());
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

void name_event(RecordedEvent& event) {
    const Known known = by_numbers(event);
    if (event.name.empty()) event.name = known.name.empty() ? numbered_name(event) : std::string(known.name);
    event.unit = known.unit;
    if (event.type == hw_cache) event.unit = (event.config >> 16 & 0xff) == 1 ? "misses" : "references";
    if (event.unit.empty() && event.name == "cycles") event.unit = "cycles";
    if (event.unit.empty() && event.name == "instructions") event.unit = "instructions";
    if (event.unit.empty()) event.unit = "events";
}

}  // namespace flamewire::profile::perf_data
