#include "views/counters.h"

#include <algorithm>
#include <map>
#include <span>
#include <string_view>

#include "profile/query/query.h"

namespace flamewire::views {
namespace {

using profile::CounterPoint;
using profile::CounterSeries;
using wire::CounterStatus;
using Interval = CounterCurve::Interval;

struct Group {
    std::vector<const CounterSeries*> series;
    std::uint64_t elapsed_ns = 0;            // time in the range during which its counters counted
    std::uint64_t first_ns = 0;              // when counting began
    std::uint64_t start_ns = 0, end_ns = 0;  // first and last reading of the range
};

Breakdown kind_of(const CounterSeries& series) {
    if (series.key.cpu_plus_1 != 0) return Breakdown::cpu;
    return series.key.thread != 0 ? Breakdown::thread : Breakdown::total;
}

counters::Sum sum_of(const profile::Store& store, const CounterSeries& series, std::span<const CounterPoint> points) {
    counters::Sum sum{std::string(store.string(series.key.name)),
                      std::string(store.string(series.key.unit)),
                      std::string(store.string(series.key.part)),
                      CounterStatus::not_counted,
                      0,
                      0,
                      0};
    if (!points.empty()) sum.status = points.front().status;
    for (const CounterPoint& point : points)
        counters::add(sum, {{}, {}, {}, point.status, point.value, point.enabled_ns, point.running_ns});
    return sum;
}

// Reduces to at most `most` intervals with the same sum: merges the intervals in each of `most` equal time slices.
std::vector<Interval> thin_out(std::vector<Interval> intervals, std::size_t most) {
    if (intervals.size() <= most) return intervals;
    const auto first_ns = static_cast<double>(intervals.front().start_ns);
    const double span_ns = static_cast<double>(intervals.back().end_ns) - first_ns;
    std::vector<Interval> merged;
    std::size_t slice = most;  // of merged.back()
    for (const Interval& interval : intervals) {
        const double middle_ns = (static_cast<double>(interval.start_ns) + static_cast<double>(interval.end_ns)) / 2;
        const auto at = static_cast<std::size_t>((middle_ns - first_ns) / span_ns * static_cast<double>(most));
        if (merged.empty() || at != slice) {
            merged.push_back(interval);
        } else {
            merged.back().end_ns = interval.end_ns;
            merged.back().value += interval.value;
        }
        slice = at;
    }
    return merged;
}

// Merges intervals of several parts that end at the same time.
std::vector<Interval> add_up_parts(std::vector<Interval> intervals) {
    std::ranges::stable_sort(intervals, {}, &Interval::end_ns);
    std::vector<Interval> sums;
    for (const Interval& interval : intervals) {
        if (!sums.empty() && sums.back().end_ns == interval.end_ns)
            sums.back().value += interval.value;
        else
            sums.push_back(interval);
    }
    return sums;
}

// The intervals of all series of this name (one per core type on a hybrid CPU), scaled, each at its end.
std::vector<Interval> intervals_of(const profile::Store& store, const Group& group, std::string_view name,
                                   const profile::Filter& filter, std::size_t slices) {
    std::vector<Interval> intervals;
    std::size_t parts = 0;
    for (const CounterSeries* series : group.series) {
        if (store.string(series->key.name) != name) continue;
        ++parts;
        for (const CounterPoint& point : profile::points_between(*series, filter.start_ns, filter.end_ns)) {
            const auto value =
                counters::scaled({{}, {}, {}, point.status, point.value, point.enabled_ns, point.running_ns});
            if (point.status == CounterStatus::counted && value)
                intervals.push_back({point.start_ns, point.end_ns, *value});
        }
    }
    if (parts > 1) intervals = add_up_parts(std::move(intervals));
    return thin_out(std::move(intervals), slices);
}

// The sampled event that counts the same; 0 if there is none.
profile::EventId sampled_event(const profile::Store& store, std::string_view counter) {
    const auto events = store.events();
    for (profile::EventId id = 1; id < events.size(); ++id) {
        if (events[id].name == counter) return id;
        if (counter == "task-clock" && events[id].name == "cpu-clock") return id;
    }
    return 0;
}

// The share of a count that its samples cover.
std::optional<double> coverage(const profile::Store& store, const Group& group, const counters::Line& line) {
    const profile::EventId event = sampled_event(store, line.sum.name);
    if (event == 0 || !line.value || *line.value <= 0) return {};
    const profile::Weight sampled =
        profile::total_of(store, {.event = event, .start_ns = group.start_ns, .end_ns = group.end_ns});
    return 100.0 * static_cast<double>(sampled.weight) / *line.value;
}

// Computes how long the group's counters counted, and when that began. All series of a scope are read together.
void measure(Group& group, const profile::Filter& filter) {
    for (const CounterSeries* series : group.series) {
        const auto points = profile::points_between(*series, filter.start_ns, filter.end_ns);
        std::uint64_t elapsed = 0;
        for (const CounterPoint& point : points) elapsed += point.end_ns - point.start_ns;
        group.elapsed_ns = std::max(group.elapsed_ns, elapsed);
        if (!points.empty()) {
            group.start_ns =
                group.start_ns == 0 ? points.front().start_ns : std::min(group.start_ns, points.front().start_ns);
            group.end_ns = std::max(group.end_ns, points.back().end_ns);
        }
        if (!series->points.empty() && (group.first_ns == 0 || series->points.front().start_ns < group.first_ns))
            group.first_ns = series->points.front().start_ns;
    }
}

CounterGroup group_of(const profile::Store& store, const CountedScope& scope, Group& group,
                      const profile::Filter& filter, std::size_t slices) {
    measure(group, filter);
    std::vector<counters::Sum> sums;
    sums.reserve(group.series.size());
    for (const CounterSeries* series : group.series)
        sums.push_back(sum_of(store, *series, profile::points_between(*series, filter.start_ns, filter.end_ns)));
    CounterGroup result{scope, group.first_ns, group.elapsed_ns, counters::derive(sums, group.elapsed_ns), {}};
    if (slices == 0) return result;
    for (const counters::Line& line : result.lines)
        result.curves.push_back({intervals_of(store, group, line.sum.name, filter, slices),
                                 scope == CountedScope{} ? coverage(store, group, line) : std::nullopt});
    return result;
}

}  // namespace

std::vector<CounterGroup> counter_groups(const profile::Store& store, const profile::Filter& filter, Breakdown by,
                                         std::size_t slices) {
    std::map<CountedScope, Group> groups;
    for (const CounterSeries& series : store.counters().series())
        if (kind_of(series) == by) groups[{series.key.thread, series.key.cpu_plus_1}].series.push_back(&series);
    std::vector<CounterGroup> result;
    for (auto& [scope, group] : groups)
        if (by != Breakdown::thread || filter.tids.empty() ||
            std::ranges::find(filter.tids, store.threads()[scope.thread].tid) != filter.tids.end())
            result.push_back(group_of(store, scope, group, filter, slices));
    return result;
}

std::string_view name_of(wire::CounterStatus status) {
    switch (status) {
        case wire::CounterStatus::counted: return "counted";
        case wire::CounterStatus::not_counted: return "not_counted";
        case wire::CounterStatus::unsupported: return "unsupported";
        case wire::CounterStatus::never_counts: return "never_counts";
        case wire::CounterStatus::forbidden: return "forbidden";
    }
    return "not_counted";
}

}  // namespace flamewire::views
