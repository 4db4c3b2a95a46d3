// What counters mean together: scaling of multiplexed ones, rates, and the derived figures that `perf stat` prints beside
// them. Pure; used by the agent's final table and by the server's panel alike.
//
// Scaling: a counter that had the PMU for only part of the time in which it should have counted is extrapolated:
// value * enabled / running. perf_event_open(2), "PERF_FORMAT_TOTAL_TIME_ENABLED".
//
// Hybrid CPUs: each kind of core has its PMU, and a thread runs on one kind at a time. So the times in which the parts
// of one counter ran add up, and what is missing to the enabled time is what multiplexing took: all parts are scaled by
// enabled / (sum of running). Scaling each by its own running time would count the time on the other cores as missing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "wire/batch.h"

namespace flamewire::counters {

// One counter over some time: sums of the readings' fields.
struct Sum {
    std::string name, unit;
    std::string part;  // PMU of a hybrid CPU; empty: all of it
    wire::CounterStatus status = wire::CounterStatus::counted;
    std::uint64_t value = 0, enabled_ns = 0, running_ns = 0;
};

// Adds an interval to what came before: values and times add up (they stay at 2^64 - 1), and a counter that had its turn in any of
// them was counted. Name, unit and part are `sum`'s.
void add(Sum& sum, const Sum& interval);

// Value as it would be with the PMU all the time; nothing when it never had it. A counter whose target did not run at
// all (enabled_ns is 0) counted all there was: its value, 0.
std::optional<double> scaled(const Sum& sum);
// Share of its time in which it was counted, in percent, 100 at most; nothing when there was no time.
std::optional<double> percent_counted(const Sum& sum);

struct Derived {
    double value = 0;
    std::string label;  // perf stat's words; one that begins with % belongs to a percentage
};

// One line of the panel.
struct Line {
    Sum sum;                                // of a hybrid CPU's parts: value and running_ns added up
    std::optional<double> value;            // scaled, in the unit
    std::optional<double> percent_counted;  // only below 100 is worth saying
    // Of the time that went by, as perf stat: of the CPU time where a clock was counted, else (and for the clocks
    // themselves) of the elapsed time.
    std::optional<double> per_second;
    // The derived figure of this counter: 1.998 "CPUs utilized", 3.1 "GHz", 0.9 "insn per cycle", 2.5 "% of all branches".
    std::optional<double> derived;
    std::string derived_label;  // perf stat's words; empty: none
    std::vector<Derived> more;  // further figures of this counter: 0.4 "stalled cycles per insn" of the instructions
    std::vector<Line> parts;    // of a hybrid CPU, one a PMU
};

// Lines in the order of `sums`, one a counter name; parts below their counter. `elapsed_ns`: wall clock time. Figures
// relate counters of the same mode only (cycles:u with instructions:u).
std::vector<Line> derive(std::span<const Sum> sums, std::uint64_t elapsed_ns);

// CPU time that a launched command used, for the end of its table.
struct CommandTimes {
    std::uint64_t user_ns = 0, system_ns = 0;
};

// The table that `perf stat` prints, for people and scripts that know it. `title` is what stands behind "Performance
// counter stats for", for example "process id '4242'".
std::string perf_stat_table(std::span<const Line> lines, const std::string& title, std::uint64_t elapsed_ns,
                            const std::optional<CommandTimes>& command = {});

}  // namespace flamewire::counters
