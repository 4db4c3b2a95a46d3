// Predicts how much the probes of a recording slow down their target, before it starts: hits are counted for a second,
// and each costs what one in the agent itself costs. The slowdown is the CPU time that hits add, relative to the CPU
// time of the target, or to one CPU if the target uses less.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "agent/perf/counter_set.h"
#include "agent/perf/event_spec.h"
#include "agent/perf/kernel.h"
#include "base/result.h"

namespace flamewire::agent {

// One probe.
struct ProbeLoad {
    std::uint64_t hits_per_second = 0;
    std::uint64_t hit_ns = 0;  // without a sample
    bool samples = true;       // false: it only counts
    // Samples per hit: one in `period`, or at most `highest_sample_rate` per second.
    std::uint64_t period = 1, highest_sample_rate = 0;  // rate 0: no limit
    bool may_thin = false;                              // `period` may be raised
};

struct TargetLoad {
    std::vector<ProbeLoad> probes;
    std::uint64_t sample_ns = 0;       // what a sample costs in addition to its hit
    std::uint64_t cpu_per_second = 0;  // CPU time of the target with the probes, ns
};

struct ProbeForecast {
    std::uint64_t slowdown_permille = 0;  // with `thinning`
    std::uint64_t thinning = 1;           // factor for the periods that may be raised
    bool too_slow = false;                // even with the highest factor
};

struct ProbeLimits {
    std::uint64_t slowdown_permille = 100;
    std::uint64_t samples_per_second = UINT64_MAX;  // of probes whose period may be raised
    std::uint64_t step = 17;                        // thinning is a power of it
};
ProbeForecast forecast(const TargetLoad& load, const ProbeLimits& limits);

// Hits per second of tracepoints (`events`: perf_event_attr.config), regardless of filters, and the CPU time of the
// target. Takes one second. Errors are those of CounterSet::open().
struct HitCounts {
    std::vector<std::uint64_t> hits_per_second;  // in the order of `events`
    std::uint64_t cpu_per_second = 0;            // ns
};
Result<HitCounts> count_hits(std::span<const std::uint64_t> events, const CounterSetOptions& target,
                             const Kernel& kernel = real_kernel());

}  // namespace flamewire::agent
