// What counters mean together: scaling of multiplexed ones, rates, and the derived figures that `perf stat` prints beside
// them. Pure; used by the agent's final table and by the server's panel alike.
//
// Scaling: a counter that had the PMU for only part of the time in which it should have counted is extrapolated:
// value * enabled / running. perf_event_open(2), "PERF_FORMAT_TOTAL_TIME_ENABLED".
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

// Value as it would be with the PMU all the time; nothing when it never had it.
std::optional<double> scaled(const Sum& sum);
// Share of its time in which it was counted, in percent; nothing when there was no time.
std::optional<double> percent_counted(const Sum& sum);

// One line of the panel.
struct Line {
    Sum sum;
    std::optional<double> value;            // scaled, in the unit
    std::optional<double> percent_counted;  // only below 100 is worth saying
    std::optional<double> per_second;       // of the time that went by, as perf stat: of task-clock where that was counted
    // The derived figure of this counter: 1.998 "CPUs utilized", 3.1 "GHz", 0.9 "insn per cycle", 2.5 "% of all branches".
    std::optional<double> derived;
    std::string derived_label;  // perf stat's words; empty: none
    std::vector<Line> parts;    // of a hybrid CPU, one a PMU
};

// Lines in the order of `sums`, one a counter name; parts below their counter. `elapsed_ns`: wall clock time.
std::vector<Line> derive(std::span<const Sum> sums, std::uint64_t elapsed_ns);

// The table that `perf stat` prints, for people and scripts that know it. `title` is what stands behind "Performance
// counter stats for", for example "process id '4242'".
std::string perf_stat_table(std::span<const Line> lines, const std::string& title, std::uint64_t elapsed_ns);

}  // namespace flamewire::counters
