// Scales multiplexed counters, and computes rates and the derived figures that `perf stat` prints next to them. Pure;
// used for the agent's final table and for the server's panel.
//
// Scaling: a counter that was on the PMU for only part of its enabled time is extrapolated: value * enabled / running.
// See perf_event_open(2), "PERF_FORMAT_TOTAL_TIME_ENABLED".
//
// Hybrid CPUs: each core type has its own PMU, and a thread runs on one core type at a time. So the running times of
// one counter's parts add up, and the difference to the enabled time is due to multiplexing. All parts are scaled by
// enabled / (sum of running). Scaling each part by its own running time would count time on the other cores as missing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "wire/batch.h"

namespace flamewire::counters {

// One counter over some time: the sums of the readings' fields.
struct Sum {
    std::string name, unit;
    std::string part;  // PMU of a hybrid CPU; empty: the whole counter
    wire::CounterStatus status = wire::CounterStatus::counted;
    std::uint64_t value = 0, enabled_ns = 0, running_ns = 0;
};

// Adds an interval to `sum`: values and times add up and saturate at 2^64 - 1. The status is "counted" if any of the
// intervals was counted. Name, unit and part stay those of `sum`.
void add(Sum& sum, const Sum& interval);

// The value extrapolated to the full enabled time; nothing if the counter was never on the PMU. If the target did not
// run at all (enabled_ns is 0), the value is exact: 0.
std::optional<double> scaled(const Sum& sum);
// Percentage of its enabled time in which it was counted, at most 100; nothing if the enabled time is 0.
std::optional<double> percent_counted(const Sum& sum);

struct Derived {
    double value = 0;
    std::string label;  // perf stat's label; if it begins with %, the value is a percentage
};

// One line of the panel.
struct Line {
    Sum sum;                                // for a hybrid CPU: value and running_ns summed over the parts
    std::optional<double> value;            // scaled, in the unit
    std::optional<double> percent_counted;  // show it only below 100
    // As in perf stat: per second of CPU time if a clock was counted, otherwise (and for the clocks themselves) per
    // second of elapsed time.
    std::optional<double> per_second;
    // The derived figure of this counter: 1.998 "CPUs utilized", 3.1 "GHz", 0.9 "insn per cycle", 2.5 "% of all
    // branches".
    std::optional<double> derived;
    std::string derived_label;  // perf stat's label; empty: none
    std::vector<Derived> more;  // further figures of this counter: 0.4 "stalled cycles per insn" for instructions
    std::vector<Line> parts;    // one per PMU of a hybrid CPU
};

// Lines in the order of `sums`, one per counter name; parts are below their counter. `elapsed_ns` is wall clock time.
// Figures relate only counters of the same mode (cycles:u with instructions:u).
std::vector<Line> derive(std::span<const Sum> sums, std::uint64_t elapsed_ns);

// CPU time that a launched command used, for the end of its table.
struct CommandTimes {
    std::uint64_t user_ns = 0, system_ns = 0;
};

// The table in the format of `perf stat`. `title` follows "Performance counter stats for", for example "process id
// '4242'".
std::string perf_stat_table(std::span<const Line> lines, const std::string& title, std::uint64_t elapsed_ns,
                            const std::optional<CommandTimes>& command = {});

}  // namespace flamewire::counters
