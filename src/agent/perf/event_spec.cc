#include "agent/perf/event_spec.h"

#include <fmt/format.h>
#include <linux/perf_event.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include "agent/perf/event_items.h"
#include "agent/perf/event_names.h"
#include "agent/perf/pmu.h"
#include "agent/perf/tracepoint.h"
#include "base/file.h"

namespace flamewire::agent {
namespace {

// Since 5.15 a generic hardware or cache event contains its PMU in the upper half of config.
constexpr unsigned pmu_type_shift = 32;
constexpr std::uint32_t max_frequency_hz = 1'000'000;
constexpr std::size_t max_events = 64;
constexpr std::string_view waking_event = "sched_waking";

Result<std::uint32_t> parse_frequency(std::string_view digits, std::string_view item) {
    std::uint32_t hz = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), hz);
    if (error != std::errc{} || end != digits.data() + digits.size() || hz == 0 || hz > max_frequency_hz)
        return fail(ErrorCode::invalid, fmt::format("'@{}' in event '{}' is not a rate between 1 and {} Hz", digits,
                                                    item, max_frequency_hz));
    return hz;
}

Result<std::optional<std::uint32_t>> take_frequency(std::string_view& item) {
    const std::size_t at = item.rfind('@');
    const std::size_t slash = item.rfind('/');
    if (at == std::string_view::npos || (slash != std::string_view::npos && at < slash)) return std::nullopt;
    const std::uint32_t hz = TRY(parse_frequency(item.substr(at + 1), item));
    item = item.substr(0, at);
    return hz;
}

Result<bool> apply_modifiers(EventSpec& spec, std::string_view modifiers) {
    bool user = false, kernel = false;
    for (const char modifier : modifiers) {
        if (modifier == 'u') {
            user = true;
        } else if (modifier == 'k') {
            kernel = true;
        } else if (modifier == 'p' && spec.precise < 3) {
            ++spec.precise;
        } else {
            return fail(ErrorCode::invalid,
                        fmt::format("event '{}': modifier '{}' is not supported (known: u user, k kernel, p precise)",
                                    spec.name, modifier));
        }
    }
    if (user != kernel) (user ? spec.exclude_kernel : spec.exclude_user) = true;
    const bool software = std::any_of(spec.parts.begin(), spec.parts.end(), [](const EventPart& part) {
        return part.type == PERF_TYPE_SOFTWARE || part.type == PERF_TYPE_TRACEPOINT;
    });
    if (spec.precise > 0 && software)
        return fail(
            ErrorCode::invalid,
            fmt::format("event '{}': 'p' asks the CPU for precise addresses, which a software event does not have",
                        spec.name));
    return true;
}

EventPart generic_part(const NamedEvent& event) { return {{}, event.type, event.config, 0, 0, {}}; }

// A generic event on one core type.
EventPart core_part(const NamedEvent& event, const Pmu& pmu) {
    return {pmu.name, event.type, event.config | (std::uint64_t{pmu.type} << pmu_type_shift), 0, 0, pmu.cpus};
}

std::vector<EventPart> named_parts(const NamedEvent& event, const Sysfs& sysfs) {
    std::vector<EventPart> parts;
    if (event.type != PERF_TYPE_SOFTWARE)
        for (const Pmu& pmu : hybrid_core_pmus(sysfs)) parts.push_back(core_part(event, pmu));
    if (parts.empty()) parts.push_back(generic_part(event));
    return parts;
}

// r followed by hexadecimal digits is a raw event of the core PMU.
std::optional<std::uint64_t> parse_raw(std::string_view name) {
    if (name.size() < 2 || name.front() != 'r') return std::nullopt;
    std::uint64_t config = 0;
    const auto [end, error] = std::from_chars(name.data() + 1, name.data() + name.size(), config, 16);
    if (error != std::errc{} || end != name.data() + name.size()) return std::nullopt;
    return config;
}

std::vector<EventPart> raw_parts(std::uint64_t config, const Sysfs& sysfs) {
    std::vector<EventPart> parts;
    for (const Pmu& pmu : hybrid_core_pmus(sysfs)) parts.push_back({pmu.name, pmu.type, config, 0, 0, pmu.cpus});
    if (parts.empty()) parts.push_back({{}, PERF_TYPE_RAW, config, 0, 0, {}});
    return parts;
}

// The attributes of these PMUs are addresses, some of them in the agent's own memory.
constexpr std::array<std::string_view, 3> pointer_pmus{"breakpoint", "kprobe", "uprobe"};

// "pmu/terms/modifiers"; `item` contains at least one slash.
Result<bool> parse_pmu_event(EventSpec& spec, std::string_view item, const Sysfs& sysfs) {
    const std::size_t open = item.find('/');
    const std::size_t close = item.find('/', open + 1);
    if (open == 0 || close == std::string_view::npos)
        return fail(ErrorCode::invalid, fmt::format("event '{}' should look like pmu/event/ or pmu/field=0x1/", item));
    const std::string_view terms = trim(item.substr(open + 1, close - open - 1));
    if (terms.empty())
        return fail(ErrorCode::invalid, fmt::format("event '{}' names nothing between the slashes", item));
    std::string_view modifiers = item.substr(close + 1);
    if (modifiers.starts_with(':')) modifiers.remove_prefix(1);

    const std::string_view name = trim(item.substr(0, open));
    if (std::ranges::find(pointer_pmus, name) != pointer_pmus.end())
        return fail(
            ErrorCode::invalid,
            fmt::format("{}/…/ is not supported, as its fields are addresses; use mem:0xADDRESS, uprobe: or kprobe:",
                        name));
    const Pmu pmu = TRY(read_pmu(name, sysfs));
    spec.unit = "events";
    const auto config = parse_pmu_terms(pmu.name, terms, sysfs);
    const auto named = pmu.core ? find_named_event(terms) : std::nullopt;
    if (named) spec.unit = named->unit;
    if (config) {
        spec.parts.push_back({pmu.name, pmu.type, config->config, config->config1, config->config2, pmu.cpus});
    } else if (named && named->type != PERF_TYPE_SOFTWARE) {
        // cpu_core/cycles/: a generic name on one core type. A machine with one core type uses the plain generic event.
        EventPart part = hybrid_core_pmus(sysfs).empty() ? generic_part(*named) : core_part(*named, pmu);
        part.pmu = pmu.name;
        spec.parts.push_back(std::move(part));
    } else {
        return std::unexpected(config.error());
    }
    return apply_modifiers(spec, modifiers);
}

Result<bool> parse_tracepoint(EventSpec& spec, std::string_view system, std::string_view event,
                              std::string_view modifiers, const Sysfs& sysfs) {
    (void)TRY(find_tracepoint(spec, system, event, sysfs));
    return apply_modifiers(spec, modifiers);
}

// "sys:name/EXPR/modifiers": the last slash ends the expression, which may have some of its own.
Result<bool> parse_filtered_tracepoint(EventSpec& spec, std::string_view item, const Sysfs& sysfs) {
    const std::size_t colon = item.find(':'), open = item.find('/'), close = item.rfind('/');
    const std::string_view filter = trim(item.substr(open + 1, close > open ? close - open - 1 : 0));
    if (filter.empty())
        return fail(ErrorCode::invalid, fmt::format("event '{}' should look like sys:name/FILTER/", item));
    spec.filter = filter;
    std::string_view modifiers = item.substr(close + 1);
    if (modifiers.starts_with(':')) modifiers.remove_prefix(1);
    return parse_tracepoint(spec, item.substr(0, colon), item.substr(colon + 1, open - colon - 1), modifiers, sysfs);
}

// off-cpu also selects run-queue and io-wait, so that a thread's time is complete. It does not select woken-by.
std::uint8_t off_cpu_bits(std::string_view item) {
    for (std::size_t kind = 0; kind < off_cpu_reasons; ++kind)
        if (item == name_of(static_cast<OffCpuReason>(kind)))
            return static_cast<std::uint8_t>(kind == 0 ? bit_of(OffCpuReason::woken_by) - 1 : 1U << kind);
    return 0;
}

Result<EventSpec> off_cpu_spec(std::uint8_t bits, const Sysfs& sysfs) {
    EventSpec spec;
    for (std::size_t kind = off_cpu_reasons; kind-- > 0;)
        if ((bits >> kind & 1U) != 0) spec.name = name_of(static_cast<OffCpuReason>(kind));
    spec.off_cpu = bits;
    spec.parts = {generic_part(*find_named_event("context-switches"))};
    if ((bits & bit_of(OffCpuReason::woken_by)) != 0) {
        (void)TRY(find_tracepoint(spec, "sched", waking_event, sysfs));
        if (spec.parts.back().woken_at == 0) return fail(ErrorCode::unsupported, "sched:sched_waking has no pid here");
    }
    spec.unit = "ns";
    return spec;
}

std::string known_names() {
    std::string all;
    for (const NamedEvent& event : named_events()) all += fmt::format("{}{}", all.empty() ? "" : " ", event.name);
    return all +
           " off-cpu run-queue io-wait woken-by, cache events such as L1-dcache-load-misses, rNNN, pmu/event/, "
           "sys:tracepoint, uprobe:FUNCTION@\"FILE\", usdt:PROVIDER:NAME@\"FILE\", kprobe:FUNCTION, mem:SYMBOL:w";
}

Result<bool> parse_name(EventSpec& spec, std::string_view item, const Sysfs& sysfs) {
    const std::size_t colon = item.find(':');
    const std::string_view name = item.substr(0, colon);
    const std::string_view rest = colon == std::string_view::npos ? std::string_view{} : item.substr(colon + 1);
    if (const auto named = find_named_event(name)) {
        spec.unit = named->unit;
        spec.parts = named_parts(*named, sysfs);
        // Faults come in bursts. The kernel adapts a frequency to the time between two samples, and then gives one
        // fault the weight of thousands.
        if (spec.unit == "faults") spec.period = 1;
        return apply_modifiers(spec, rest);
    }
    if (const auto config = parse_raw(name)) {
        spec.unit = "events";
        spec.parts = raw_parts(*config, sysfs);
        return apply_modifiers(spec, rest);
    }
    if (colon != std::string_view::npos) {
        const std::size_t second = rest.find(':');
        const std::string_view modifiers = second == std::string_view::npos ? "" : rest.substr(second + 1);
        return parse_tracepoint(spec, name, rest.substr(0, second), modifiers, sysfs);
    }
    return fail(ErrorCode::invalid, fmt::format("unknown event '{}'; known: {}", item, known_names()));
}

// Each hit is a sample until there are too many, like each fault: hits come in bursts, too.
Result<EventSpec> probe_spec(std::string_view item) {
    ParsedProbe parsed = TRY(parse_probe(item));
    EventSpec spec;
    spec.name = std::move(parsed.name);
    spec.unit = "events";
    spec.filter = std::move(parsed.filter);
    spec.period = 1;
    if (!parsed.rate.empty()) spec.frequency_hz = TRY(parse_frequency(parsed.rate, item));
    spec.probe = std::make_shared<const ProbeSpec>(std::move(parsed.probe));
    return spec;
}

// Each hit is a sample until there are too many.
Result<EventSpec> breakpoint_spec(std::string_view item) {
    ParsedBreakpoint parsed = TRY(parse_breakpoint(item));
    const BreakpointSpec& breakpoint = parsed.breakpoint;
    EventSpec spec;
    spec.name = std::move(parsed.name);
    spec.unit = "events";
    spec.period = 1;
    if (!parsed.rate.empty()) spec.frequency_hz = TRY(parse_frequency(parsed.rate, item));
    const std::uint32_t length =
        breakpoint.length != 0 ? breakpoint.length : default_breakpoint_length(breakpoint.access);
    // Of a symbol only a check: its address and size are not known yet.
    EventPart part =
        TRY(breakpoint_part(item, breakpoint.symbol.empty() ? breakpoint.address : 0, length, breakpoint.access, 0));
    if (breakpoint.symbol.empty())
        spec.parts.push_back(std::move(part));
    else
        spec.breakpoint = std::move(parsed.breakpoint);
    (void)TRY(apply_modifiers(spec, parsed.modifiers));
    return spec;
}

Result<EventSpec> parse_event(std::string_view item, const Sysfs& sysfs) {
    if (item.empty()) return fail(ErrorCode::invalid, "an event name is missing (two commas, or one at the end)");
    if (item.size() > 512) return fail(ErrorCode::invalid, "an event name is longer than 512 characters");
    if (item.front() == '{')
        return fail(ErrorCode::invalid, "event groups in braces are not supported; list the events");
    if (is_probe(item)) return probe_spec(item);
    if (is_breakpoint(item)) return breakpoint_spec(item);
    EventSpec spec;
    spec.frequency_hz = TRY(take_frequency(item));
    spec.name = item;
    const std::size_t slash = item.find('/');
    if (slash != std::string_view::npos && item.find(':') < slash) {
        (void)TRY(parse_filtered_tracepoint(spec, item, sysfs));
    } else if (slash != std::string_view::npos) {
        (void)TRY(parse_pmu_event(spec, item, sysfs));
    } else {
        (void)TRY(parse_name(spec, item, sysfs));
    }
    return spec;
}

// An event's text, or that of each tracepoint that a pattern stands for: "sys:name*" and what follows the name.
Result<std::vector<std::string>> expand_tracepoints(std::string_view item, const Sysfs& sysfs) {
    const std::size_t colon = std::min(item.find_first_of(":/"), item.size());
    const std::size_t end = std::min(item.find_first_of(":/@", colon + 1), item.size());
    const std::string_view name = item.substr(0, end);
    if (!item.substr(colon).starts_with(':') || is_probe(item) || is_breakpoint(item) ||
        name.find('*') == std::string_view::npos)
        return std::vector<std::string>{std::string(item)};
    const std::string_view system = name.substr(0, colon);
    std::vector<std::string> items = TRY(matching_tracepoints(system, name.substr(colon + 1), sysfs));
    if (items.size() > max_events)
        return fail(ErrorCode::invalid, fmt::format("{} stands for {} tracepoints; at most {} events are possible",
                                                    name, items.size(), max_events));
    for (std::string& one : items) one = fmt::format("{}:{}{}", system, one, item.substr(end));
    return items;
}

// Each occurrence is kept until there are too many. Clocks and hardware events occur too often.
void apply(Mark mark, EventSpec& spec) {
    if (mark == Mark::none) return;
    spec.traced = true;
    spec.trigger = mark == Mark::trigger;
    const std::uint32_t type = spec.parts.empty() ? std::uint32_t{PERF_TYPE_TRACEPOINT} : spec.parts.front().type;
    const bool clock = spec.unit == "ns";
    const bool occurs = type == PERF_TYPE_TRACEPOINT || type == PERF_TYPE_BREAKPOINT || type == PERF_TYPE_SOFTWARE;
    if (occurs && !clock && !spec.frequency_hz) spec.period = 1;
}

}  // namespace

SamplingRate sampling_rate_of(const EventSpec& spec, const SamplingRate& of_all) {
    if (spec.frequency_hz) return {*spec.frequency_hz, 0};
    return spec.period != 0 ? SamplingRate{0, spec.period} : of_all;
}

std::string_view name_of(OffCpuReason kind) {
    switch (kind) {
        case OffCpuReason::run_queue: return "run-queue";
        case OffCpuReason::io_wait: return "io-wait";
        case OffCpuReason::woken_by: return "woken-by";
        case OffCpuReason::off_cpu: break;
    }
    return "off-cpu";
}

Sysfs real_sysfs() {
    return {[](const std::string& path) { return read_file("/sys/" + path, std::size_t{1} << 20); },
            [](const std::string& path) -> Result<std::vector<std::string>> {
                const std::string full = "/sys/" + path;
                std::vector<std::string> names;
                if (const int listed = System::current().list(full, SIZE_MAX, names); listed != 0)
                    return fail_errno("open " + full, -listed);
                std::erase_if(names, [](const std::string& name) { return name.starts_with('.'); });
                return names;
            }};
}

bool sets_config_words(std::string_view list) {
    while (!list.empty()) {
        const std::size_t end = std::min(list.find_first_of(",/"), list.size());
        const std::string_view term = list.substr(0, end);
        list.remove_prefix(std::min(end + 1, list.size()));
        const std::size_t equals = term.find('=');
        // A double equals sign is a comparison in a tracepoint's filter.
        const bool assigns = equals != std::string_view::npos && !term.substr(equals).starts_with("==");
        if (assigns && trim(term.substr(0, equals)).starts_with("config")) return true;
    }
    return false;
}

Result<std::vector<EventSpec>> parse_events(std::string_view list, const Sysfs& sysfs) {
    std::vector<EventSpec> specs;
    std::uint8_t off_cpu = 0;
    for (std::string_view item : split_list(list)) {
        const Mark mark = take_mark(item);
        if (const std::uint8_t bits = off_cpu_bits(item); bits != 0) {
            if (mark != Mark::none)
                return fail(ErrorCode::invalid, fmt::format("{} is a time, not an event to trace. Trace the tracepoint "
                                                            "sched:sched_switch",
                                                            item));
            off_cpu |= bits;
            continue;
        }
        for (const std::string& one : TRY(expand_tracepoints(item, sysfs))) {
            EventSpec spec = TRY(parse_event(one, sysfs));
            apply(mark, spec);
            const auto known = std::ranges::find(specs, spec.name, &EventSpec::name);
            if (known == specs.end()) {
                specs.push_back(std::move(spec));
            } else if (known->traced == spec.traced) {
                return fail(ErrorCode::invalid, fmt::format("event '{}' is listed twice", spec.name));
            } else if (spec.traced) {
                *known = std::move(spec);
            }
            if (specs.size() > max_events)
                return fail(ErrorCode::invalid, fmt::format("more than {} events at once", max_events));
        }
    }
    if (off_cpu != 0) specs.push_back(TRY(off_cpu_spec(off_cpu, sysfs)));
    return specs;
}

}  // namespace flamewire::agent
