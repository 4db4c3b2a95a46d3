#include "agent/probes/probe_forecast.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/clock.h"

namespace flamewire::agent {
namespace {

constexpr std::chrono::seconds counting_time{1};
constexpr std::uint64_t ns_per_second = 1'000'000'000;
constexpr int max_steps = 4;

std::uint64_t samples_per_second(const ProbeLoad& probe, std::uint64_t thinning) {
    if (!probe.samples) return 0;
    const std::uint64_t period = std::max<std::uint64_t>(probe.period, 1) * (probe.may_thin ? thinning : 1);
    const std::uint64_t rate = probe.hits_per_second / period;
    return probe.highest_sample_rate == 0 ? rate : std::min(rate, probe.highest_sample_rate);
}

Counter tracepoint_counter(std::uint64_t id) {
    Counter counter;
    counter.spec.parts = {{{}, PERF_TYPE_TRACEPOINT, id, 0, 0, {}}};
    return counter;
}

Counter task_clock() {
    Counter counter;
    counter.spec.parts = {{{}, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, 0, 0, {}}};
    return counter;
}

}  // namespace

ProbeForecast forecast(const TargetLoad& load, const ProbeLimits& limits) {
    std::uint64_t hits_ns = 0;
    for (const ProbeLoad& probe : load.probes) hits_ns += probe.hits_per_second * probe.hit_ns;
    const std::uint64_t own_ns = load.cpu_per_second - std::min(hits_ns, load.cpu_per_second);
    const std::uint64_t relative_to_ns = std::max(own_ns, ns_per_second);
    ProbeForecast result;
    for (int i = 0;; ++i) {
        std::uint64_t samples = 0, thinnable = 0;
        for (const ProbeLoad& probe : load.probes) {
            const std::uint64_t rate = samples_per_second(probe, result.thinning);
            samples += rate;
            if (probe.may_thin) thinnable += rate;
        }
        result.slowdown_permille = (hits_ns + samples * load.sample_ns) / (relative_to_ns / 1000);
        result.too_slow = result.slowdown_permille > limits.slowdown_permille;
        const bool too_many = thinnable > limits.samples_per_second;
        if (!(result.too_slow || too_many) || i == max_steps) return result;
        result.thinning *= limits.step;
    }
}

Result<HitCounts> count_hits(std::span<const std::uint64_t> events, const CounterSetOptions& target,
                             const Kernel& kernel) {
    std::vector<Counter> counters;
    for (const std::uint64_t id : events) counters.push_back(tracepoint_counter(id));
    counters.push_back(task_clock());
    const std::unique_ptr<CounterSet> set = TRY(CounterSet::open(target, counters, kernel));
    const std::uint64_t begin_ns = monotonic_ns();
    std::this_thread::sleep_for(counting_time);
    const std::vector<CounterDelta> deltas = set->read();
    const std::uint64_t elapsed_ns = std::max<std::uint64_t>(monotonic_ns() - begin_ns, 1);
    HitCounts counted;
    counted.hits_per_second.resize(events.size());
    for (const CounterDelta& delta : deltas) {
        // Hits of many threads in one second stay far below 2^64 / 10^9.
        const std::uint64_t per_second = delta.value * 1000 / std::max<std::uint64_t>(elapsed_ns / 1'000'000, 1);
        if (delta.counter < events.size())
            counted.hits_per_second[delta.counter] += per_second;
        else
            counted.cpu_per_second += per_second;
    }
    return counted;
}

}  // namespace flamewire::agent
