// Counter values of a part of a recording: of the whole target, or per thread or CPU, in the order in which they were
// requested. Includes the figures that `perf stat` derives from them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "counters/derive.h"
#include "profile/store/store.h"
#include "views/view.h"

namespace flamewire::views {

// As answers have it: "not_counted".
std::string_view name_of(wire::CounterStatus status);

// One thread, one CPU, or the whole target.
struct CountedScope {
    profile::ThreadId thread = 0;
    std::uint32_t cpu_plus_1 = 0;
    auto operator<=>(const CountedScope&) const = default;
};

// A counter over time: the intervals of all its parts, scaled.
struct CounterCurve {
    struct Interval {
        std::uint64_t start_ns = 0, end_ns = 0;
        double value = 0;
    };
    std::vector<Interval> intervals;
    std::optional<double> coverage_percent;  // by the samples of the same event, of the whole target
};

struct CounterGroup {
    CountedScope scope;
    std::uint64_t first_ns = 0;    // when counting began
    std::uint64_t elapsed_ns = 0;  // time in the range during which its counters counted
    std::vector<counters::Line> lines;
    std::vector<CounterCurve> curves;  // of each line, if they are wanted
};

// Of the time range and the threads of `filter`. Curves have at most `slices` intervals, with the same sum; none
// are computed for 0 slices.
std::vector<CounterGroup> counter_groups(const profile::Store& store, const profile::Filter& filter, Breakdown by,
                                         std::size_t slices);

}  // namespace flamewire::views
