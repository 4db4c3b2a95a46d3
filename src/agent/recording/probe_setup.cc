#include "agent/recording/probe_setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "agent/log.h"
#include "agent/probes/place_probes.h"
#include "agent/probes/probe_forecast.h"
#include "agent/recording/event_throttle.h"

namespace flamewire::agent {
namespace {

// Only the cost of probes in user code is known.
struct Kinds {
    bool user = false, kernel = false;
    void add(const EventSpec& spec) {
        if (spec.probe) (spec.probe->in_kernel() ? kernel : user) = true;
    }
};

Kinds kinds_of(const RequestedEvents& wanted) {
    Kinds kinds;
    for (const EventSpec& spec : wanted.events) kinds.add(spec);
    for (const RequestedCounter& counter : wanted.counters) kinds.add(counter.spec);
    return kinds;
}

std::string microseconds(std::uint64_t ns) { return fmt::format("{}.{} us", ns / 1000, ns % 1000 / 100); }

std::string percent(std::uint64_t permille) { return fmt::format("{}.{}%", permille / 10, permille % 10); }

void log_place(const PlacedProbe& probe, const ProbeCosts& costs) {
    const std::uint32_t hit_ns = costs.hit_ns(probe.emulated);
    log("{}: offset {:#x} of {}{}", probe.event, probe.offset, probe.file,
        hit_ns != 0 ? fmt::format(", about {} per hit", microseconds(hit_ns)) : std::string());
}

// What a sample adds to its hit. In auto mode most programs need copies of 2 KiB.
std::uint64_t sample_ns(const ProbeCosts& costs, const Settings& settings) {
    constexpr std::uint32_t hybrid_bytes = 2'048;
    if (settings.unwind == "dwarf") return costs.sample_ns + costs.copy_ns(settings.stack_bytes);
    const bool copies = settings.unwind == "auto" || settings.unwind == "hybrid";
    return costs.sample_ns + costs.chain_32_ns + (copies ? costs.copy_ns(hybrid_bytes) : 0);
}

const EventSpec* event_of(const RequestedEvents& wanted, const std::string& name) {
    const auto found = std::ranges::find(wanted.events, name, &EventSpec::name);
    return found == wanted.events.end() ? nullptr : &*found;
}

ProbeLoad load_of(const PlacedProbe& probe, const EventSpec* sampled, std::uint64_t hits, const ProbeCosts& costs,
                  const Settings& settings) {
    ProbeLoad load;
    load.hits_per_second = hits;
    load.hit_ns = costs.hit_ns(probe.emulated);
    load.samples = sampled != nullptr;
    if (sampled == nullptr) return load;
    const SamplingRate rate = sampling_rate_of(*sampled, {settings.frequency_hz, settings.period});
    load.may_thin = sampled->period != 0 && rate.frequency_hz == 0;
    load.period = std::max<std::uint64_t>(rate.period, 1);
    load.highest_sample_rate = rate.frequency_hz;
    return load;
}

// not_found would mean that the target has exited, for which --name waits again.
std::unexpected<Error> refused(Error error) {
    if (error.code == ErrorCode::not_found) error.code = ErrorCode::invalid;
    return std::unexpected(std::move(error));
}

}  // namespace

ProbeCosts ProbeSetup::costs() {
    const std::lock_guard lock(mutex_);
    if (costs_.measured()) return costs_;
    const auto make_probe = [this, group = new_tracefs_group(sysfs_)](std::uint64_t offset) -> Result<perf_event_attr> {
        if (!group) return std::unexpected(group.error());
        EventSpec spec;
        (void)TRY(create_probe(**group, {"cost", "/proc/self/exe", offset, 0, {}}, sysfs_, spec));
        perf_event_attr attr{};
        attr.type = spec.parts.back().type;
        attr.config = spec.parts.back().config;
        return attr;
    };
    costs_ = measure_probe_costs(make_probe, real_kernel());
    return costs_;
}

Result<bool> ProbeSetup::prepare(RequestedEvents& wanted, const Settings& settings, const ProbeTarget& target,
                                 const std::optional<CounterSetOptions>& running) {
    const Kinds kinds = kinds_of(wanted);
    if (!kinds.user && !kinds.kernel) return true;
    const auto in_kernel = [](const EventSpec& spec) { return spec.probe && spec.probe->in_kernel(); };
    if (!settings.kernel && std::ranges::any_of(wanted.events, in_kernel))
        return fail(ErrorCode::invalid, "samples of probes in the kernel need kernel mode, which is excluded here");
    const ProbeCosts costs = kinds.user ? this->costs() : ProbeCosts();
    const bool measured = costs.measured();
    if (kinds.user && !measured)
        log("the cost of probes is unknown, and the slowdown is not predicted: the agent cannot probe itself ({})",
            std::strerror(costs.error));
    ProbePlacer sampled(target, sysfs_, measured ? std::optional(costs.emulated) : std::nullopt);
    if (auto placed = sampled.place(wanted.events); !placed) return refused(std::move(placed).error());
    ProbePlacer counted(target, sysfs_, measured ? std::optional(costs.emulated) : std::nullopt);
    std::vector<RequestedCounter> counters;
    for (RequestedCounter& counter : wanted.counters) {
        std::vector<EventSpec> specs{std::move(counter.spec)};
        if (auto placed = counted.place(specs); !placed) return refused(std::move(placed).error());
        for (EventSpec& spec : specs) counters.push_back({std::move(spec), counter.optional});
    }
    wanted.counters = std::move(counters);
    wanted.event_probes = sampled.take();
    wanted.counter_probes = counted.take();
    for (const PlacedProbes* probes : {&wanted.event_probes, &wanted.counter_probes})
        for (const PlacedProbe& probe : probes->places) log_place(probe, costs);
    if (measured && running) return check_slowdown(wanted, settings, costs, *running);
    return true;
}

Result<bool> ProbeSetup::check_slowdown(RequestedEvents& wanted, const Settings& settings, const ProbeCosts& costs,
                                        const CounterSetOptions& running) const {
    std::vector<std::uint64_t> tracepoints;
    for (const PlacedProbes* probes : {&wanted.event_probes, &wanted.counter_probes})
        for (const PlacedProbe& probe : probes->places) tracepoints.push_back(probe.tracepoint);
    const HitCounts counted = TRY(count_hits(tracepoints, running));
    TargetLoad load;
    load.sample_ns = sample_ns(costs, settings);
    load.cpu_per_second = counted.cpu_per_second;
    std::uint64_t hits = 0;
    const PlacedProbe* busiest = nullptr;
    std::uint64_t most = 0;
    std::size_t index = 0;
    for (const PlacedProbes* probes : {&wanted.event_probes, &wanted.counter_probes})
        for (const PlacedProbe& probe : probes->places) {
            const std::uint64_t rate = counted.hits_per_second[index++];
            const EventSpec* const spec = probes == &wanted.event_probes ? event_of(wanted, probe.event) : nullptr;
            load.probes.push_back(load_of(probe, spec, rate, costs, settings));
            hits += rate;
            if (rate >= most) busiest = &probe;
            most = std::max(most, rate);
        }
    constexpr std::uint64_t most_samples = EventThrottle::max_samples * (1'000'000'000 / EventThrottle::window_ns);
    const ProbeForecast predicted =
        forecast(load, {std::uint64_t{max_slowdown_percent_} * 10, most_samples, EventThrottle::step});
    if (predicted.too_slow)
        return fail(ErrorCode::busy,
                    fmt::format("{} hits per second, most of them of {}, would slow down the target by about {}; "
                                "--max-slowdown allows {}%. Choose rarer functions, or start the agent with a higher "
                                "--max-slowdown",
                                hits, busiest->event, percent(predicted.slowdown_permille), max_slowdown_percent_));
    log("{} hits per second: a slowdown of about {}", hits, percent(predicted.slowdown_permille));
    if (predicted.thinning == 1) return true;
    for (EventSpec& spec : wanted.events)
        if (spec.period != 0 && !spec.frequency_hz && spec.parts.front().pmu == probe_pmu)
            spec.period *= predicted.thinning;
    return true;
}

}  // namespace flamewire::agent
