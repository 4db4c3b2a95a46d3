#include "agent/perf/counter_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "agent/perf/attr.h"
#include "agent/perf/event_probe.h"

namespace flamewire::agent {
namespace {

constexpr std::string_view always_counted =
    "cycles,instructions,cache-references,cache-misses,branch-instructions,branch-misses,page-faults,context-switches,"
    "cpu-migrations,task-clock";
constexpr std::string_view counted_where_possible =
    "stalled-cycles-frontend,stalled-cycles-backend,minor-faults,major-faults,alignment-faults,emulation-faults,"
    "L1-dcache-loads,L1-dcache-load-misses,L1-icache-load-misses,LLC-loads,LLC-load-misses,dTLB-loads,dTLB-load-misses,"
    "iTLB-loads,iTLB-load-misses";

// Kernels for these architectures neither trap unaligned accesses nor emulate instructions, so they count no such
// events.
#if defined(__x86_64__) || defined(__i386__)
constexpr bool kernel_repairs_instructions = false;
#else
constexpr bool kernel_repairs_instructions = true;
#endif

bool is_software(const EventPart& part) { return part.type == PERF_TYPE_SOFTWARE; }

bool cannot_count(const EventPart& part) {
    return !kernel_repairs_instructions && is_software(part) &&
           (part.config == PERF_COUNT_SW_ALIGNMENT_FAULTS || part.config == PERF_COUNT_SW_EMULATION_FAULTS);
}

// Happens in kernel mode only: without kernel mode it would always be 0.
bool needs_kernel(const EventPart& part) {
    return part.type == PERF_TYPE_TRACEPOINT || (is_software(part) && (part.config == PERF_COUNT_SW_CONTEXT_SWITCHES ||
                                                                       part.config == PERF_COUNT_SW_CPU_MIGRATIONS));
}

// cycles:u, cycles:pu, cpu/cycles/u.
std::string user_mode_name(std::string name) {
    const std::size_t slash = name.rfind('/');
    const bool marked = name.find(':', slash == std::string::npos ? 0 : slash) != std::string::npos;
    name += marked || slash != std::string::npos ? "u" : ":u";
    return name;
}

Result<std::vector<RequestedCounter>> add_counters(std::vector<RequestedCounter> counters, std::string_view list,
                                                   bool optional, const Sysfs& sysfs) {
    for (EventSpec& spec : TRY(parse_events(list, sysfs))) {
        if (is_breakpoint(spec))
            return fail(ErrorCode::unsupported,
                        fmt::format("breakpoints such as {} cannot only be counted; give them to --events", spec.name));
        counters.push_back({std::move(spec), optional});
    }
    return counters;
}

// Every part of every counter separately; its status is not yet known.
std::vector<Counter> split_parts(const std::vector<RequestedCounter>& wanted, bool user_only, bool kernel_allowed) {
    std::vector<Counter> counters;
    for (const RequestedCounter& one : wanted)
        for (const EventPart& part : one.spec.parts) {
            Counter counter;
            counter.unit = one.spec.unit;
            counter.spec = one.spec;
            counter.spec.parts = {part};
            if (one.spec.parts.size() > 1) counter.part = part.pmu;
            const bool by_cpu = !is_software(part) && part.type != PERF_TYPE_TRACEPOINT;
            const bool has_mode = one.spec.exclude_kernel || one.spec.exclude_user;
            const bool kernel = kernel_allowed && (has_mode || !user_only || !by_cpu);
            counter.spec.exclude_kernel = one.spec.exclude_kernel || !kernel;
            counter.name = kernel || has_mode || needs_kernel(part) ? one.spec.name : user_mode_name(one.spec.name);
            counters.push_back(std::move(counter));
        }
    return counters;
}

wire::CounterStatus status_of(const Counter& counter, const EventProbe& probe) {
    using wire::CounterStatus;
    if (probe.error == EACCES || probe.error == EPERM) return CounterStatus::forbidden;
    // Without a descriptor for the trial the event's support is unknown; opening it later reports the problem.
    if (probe.error == EMFILE || probe.error == ENFILE) return CounterStatus::counted;
    if (probe.error != 0) return CounterStatus::unsupported;
    // The trial ran on one core type only.
    if (!counter.part.empty()) return CounterStatus::counted;
    // An event that was not scheduled may be later; otherwise each interval reports it as not counted.
    return probe.scheduled && !probe.counted ? CounterStatus::never_counts : CounterStatus::counted;
}

}  // namespace

Result<std::vector<RequestedCounter>> parse_counters(std::string_view list, const Sysfs& sysfs) {
    if (list == "none") return std::vector<RequestedCounter>{};
    if (!list.empty() && list != "default") return add_counters({}, list, false, sysfs);
    return add_counters(TRY(add_counters({}, always_counted, false, sysfs)), counted_where_possible, true, sysfs);
}

perf_event_attr counter_attr(const EventSpec& spec, const EventPart& part, const CounterAttrOptions& options) {
    perf_event_attr attr{};
    attr.size = sizeof attr;
    set_configuration(attr, part);
    attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    if (options.group_read) attr.read_format |= PERF_FORMAT_GROUP;
    attr.inherit = options.inherit ? 1 : 0;
    attr.disabled = options.disabled ? 1 : 0;
    attr.enable_on_exec = options.enable_on_exec ? 1 : 0;
    attr.exclude_user = spec.exclude_user ? 1 : 0;
    attr.exclude_kernel = spec.exclude_kernel ? 1 : 0;
    attr.exclude_hv = spec.exclude_kernel ? 1 : 0;
    return attr;
}

std::vector<Counter> choose_counters(const std::vector<RequestedCounter>& wanted, bool user_only,
                                     const Capabilities& capabilities, const Kernel& calls) {
    using wire::CounterStatus;
    const bool kernel_allowed = capabilities.kernel_samples;
    std::vector<Counter> counters = split_parts(wanted, user_only, kernel_allowed);
    std::vector<EventSpec> specs;
    specs.reserve(counters.size());
    for (const Counter& counter : counters) specs.push_back(counter.spec);
    const MakeAttr make_attr = [](const EventSpec& spec, const EventPart& part) {
        return counter_attr(spec, part, {.inherit = false, .group_read = false});
    };
    const std::vector<EventProbe> probes = probe_events(specs, make_attr, calls);
    for (std::size_t i = 0; i < counters.size(); ++i) {
        Counter& counter = counters[i];
        counter.status = status_of(counter, probes[i]);
        if (!probes[i].spec.parts.empty()) counter.spec = probes[i].spec;
        counter.filter_error = probes[i].filter_error;
        if (cannot_count(counter.event())) counter.status = CounterStatus::never_counts;
        const bool kernel_only = needs_kernel(counter.event()) || counter.spec.exclude_user;
        if (kernel_only && counter.spec.exclude_kernel && counter.status == CounterStatus::counted)
            counter.status = kernel_allowed ? CounterStatus::never_counts : CounterStatus::forbidden;
    }
    std::vector<Counter> chosen;
    std::size_t index = 0;
    for (const RequestedCounter& one : wanted) {
        const auto begin = counters.begin() + static_cast<std::ptrdiff_t>(index);
        const auto end = begin + static_cast<std::ptrdiff_t>(one.spec.parts.size());
        const bool works =
            std::any_of(begin, end, [](const Counter& counter) { return counter.status == CounterStatus::counted; });
        if (works || !one.optional)
            chosen.insert(chosen.end(), std::make_move_iterator(begin), std::make_move_iterator(end));
        index += one.spec.parts.size();
    }
    return chosen;
}

std::string group_key(const EventPart& part) {
    if (part.type == PERF_TYPE_SOFTWARE) return "software";
    if (part.type == PERF_TYPE_TRACEPOINT) return "tracepoint";
    if (part.type == PERF_TYPE_HARDWARE || part.type == PERF_TYPE_HW_CACHE || part.type == PERF_TYPE_RAW)
        return part.pmu == "cpu" ? std::string() : part.pmu;
    return part.pmu + "/";
}

bool counted_by_kernel(const EventPart& part) {
    return part.type == PERF_TYPE_SOFTWARE || part.type == PERF_TYPE_TRACEPOINT;
}

std::string_view name_of(wire::CounterStatus status) {
    switch (status) {
        case wire::CounterStatus::counted: return "counted";
        case wire::CounterStatus::not_counted: return "not counted";
        case wire::CounterStatus::unsupported: return "unsupported";
        case wire::CounterStatus::never_counts: return "never counts";
        case wire::CounterStatus::forbidden: return "forbidden";
    }
    return "counted";
}

}  // namespace flamewire::agent
