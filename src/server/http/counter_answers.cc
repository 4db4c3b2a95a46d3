#include "server/http/counter_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "base/json_writer.h"
#include "profile/query/query.h"
#include "server/http/view.h"

namespace flamewire::server {
namespace {

using profile::CounterPoint;
using profile::CounterSeries;
using wire::CounterStatus;

constexpr double ns_per_ms = 1e6;
constexpr std::uint64_t default_slices = 300, max_slices = 2000;

std::string_view name_of(CounterStatus status) {
    switch (status) {
        case CounterStatus::counted:
            return "counted";
        case CounterStatus::not_counted:
            return "not_counted";
        case CounterStatus::unsupported:
            return "unsupported";
        case CounterStatus::never_counts:
            return "never_counts";
        case CounterStatus::forbidden:
            return "forbidden";
    }
    return "not_counted";
}

// One thread, one CPU, or the whole target.
struct Scope {
    profile::ThreadId thread = 0;
    std::uint32_t cpu_plus_1 = 0;
    auto operator<=>(const Scope&) const = default;
};

struct Group {
    std::vector<const CounterSeries*> series;
    std::uint64_t elapsed_ns = 0;            // time in the window during which its counters counted
    std::uint64_t first_ns = 0;              // when counting began
    std::uint64_t start_ns = 0, end_ns = 0;  // first and last reading of the window
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

struct Window {
    std::uint64_t start_ns = 0, end_ns = 0, origin_ns = 0;
    std::size_t slices = 0;  // maximum number of intervals per series
    [[nodiscard]] double ms(std::uint64_t time_ns) const {
        return (static_cast<double>(time_ns) - static_cast<double>(origin_ns)) / ns_per_ms;
    }
};

void write_line(JsonWriter& json, const counters::Line& line) {
    json.member("name", line.sum.name);
    json.member("unit", line.sum.unit);
    json.member("status", name_of(line.sum.status));
    const bool counted = line.sum.status == CounterStatus::counted;
    if (counted && line.value) json.member("value", *line.value);
    if (counted && line.percent_counted) json.member("percent_counted", *line.percent_counted);
    if (counted && line.per_second) json.member("per_second", *line.per_second);
    std::vector<counters::Derived> derived;
    if (counted && line.derived) derived.push_back({*line.derived, line.derived_label});
    if (counted) derived.insert(derived.end(), line.more.begin(), line.more.end());
    json.list("derived", derived, [&](const counters::Derived& figure) {
        json.object();
        json.member("value", figure.value);
        json.member("label", figure.label);
        json.end_object();
    });
}

struct Interval {
    std::uint64_t start_ns = 0, end_ns = 0;
    double value = 0;
};

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
void write_series(JsonWriter& json, const Group& group, const profile::Store& store, std::string_view name,
                  const Window& window) {
    std::vector<Interval> intervals;
    std::size_t parts = 0;
    for (const CounterSeries* series : group.series) {
        if (store.string(series->key.name) != name) continue;
        ++parts;
        for (const CounterPoint& point : profile::points_between(*series, window.start_ns, window.end_ns)) {
            const auto value =
                counters::scaled({{}, {}, {}, point.status, point.value, point.enabled_ns, point.running_ns});
            if (point.status == CounterStatus::counted && value)
                intervals.push_back({point.start_ns, point.end_ns, *value});
        }
    }
    if (parts > 1) intervals = add_up_parts(std::move(intervals));
    intervals = thin_out(std::move(intervals), window.slices);
    json.key("series");
    json.object();
    json.list("start_ms", intervals, [&](const Interval& one) { json.number(window.ms(one.start_ns)); });
    json.list("end_ms", intervals, [&](const Interval& one) { json.number(window.ms(one.end_ns)); });
    json.list("value", intervals, [&](const Interval& one) { json.number(one.value); });
    json.end_object();
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

std::vector<counters::Sum> sums_of(const profile::Store& store, const Group& group, const Window& window) {
    std::vector<counters::Sum> sums;
    sums.reserve(group.series.size());
    for (const CounterSeries* series : group.series)
        sums.push_back(sum_of(store, *series, profile::points_between(*series, window.start_ns, window.end_ns)));
    return sums;
}

void write_group(JsonWriter& json, const profile::Store& store, const Scope& scope, const Group& group,
                 const Window& window) {
    json.object();
    if (scope.thread != 0) {
        const profile::Thread& thread = store.threads()[scope.thread];
        json.key("thread");
        json.object();
        json.member("tid", thread.tid);
        json.member("pid", thread.pid);
        json.member("comm", thread.comm);
        json.end_object();
    }
    if (scope.cpu_plus_1 != 0) json.member("cpu", scope.cpu_plus_1 - 1);
    json.member("first_ms", window.ms(group.first_ns));
    json.member("elapsed_ms", static_cast<double>(group.elapsed_ns) / ns_per_ms);
    json.list("counters", counters::derive(sums_of(store, group, window), group.elapsed_ns),
              [&](const counters::Line& line) {
                  json.object();
                  write_line(json, line);
                  json.list("parts", line.parts, [&](const counters::Line& part) {
                      json.object();
                      json.member("part", part.sum.part);
                      write_line(json, part);
                      json.end_object();
                  });
                  const bool whole = scope == Scope{};
                  const profile::EventId event = whole ? sampled_event(store, line.sum.name) : 0;
                  if (event != 0 && line.value && *line.value > 0) {
                      profile::Filter filter;
                      filter.event = event;
                      filter.start_ns = group.start_ns;
                      filter.end_ns = group.end_ns;
                      profile::Weight sampled;
                      for (const profile::Weight& slice : profile::histogram(store, filter, 1)) sampled += slice;
                      json.member("coverage_percent", 100.0 * static_cast<double>(sampled.weight) / *line.value);
                  }
                  write_series(json, group, store, line.sum.name, window);
                  json.end_object();
              });
    json.end_object();
}

// Computes how long the group's counters counted, and when that began. All series of a scope are read together.
void measure(Group& group, const Window& window) {
    for (const CounterSeries* series : group.series) {
        const auto points = profile::points_between(*series, window.start_ns, window.end_ns);
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

}  // namespace

Counted counted(const profile::Store& store) {
    Group all;
    for (const CounterSeries& series : store.counters().series())
        if (kind_of(series) == Breakdown::total) all.series.push_back(&series);
    const Window window{.end_ns = std::numeric_limits<std::uint64_t>::max()};
    measure(all, window);
    return {counters::derive(sums_of(store, all, window), all.elapsed_ns), all.elapsed_ns};
}

Answer counters_answer(const Session& session, const Request& request) {
    const auto by = parse_breakdown(request.parameter("by"));
    if (!by) return error_answer(by.error());
    auto parameters = parse_view(request);
    if (!parameters) return error_answer(parameters.error());
    parameters->event.clear();
    std::uint64_t slices = default_slices;
    if (const auto text = request.parameter("slices"); !text.empty()) {
        const auto parsed = parse_integer("slices", text);
        if (!parsed) return error_answer(parsed.error());
        slices = *parsed;
    }
    if (slices == 0 || slices > max_slices)
        return error_answer(400, "validation", fmt::format("slices must be between 1 and {}", max_slices));
    return session.read([&](const profile::Store& store) -> Answer {
        const profile::CounterHistory& history = store.counters();
        // A session without samples begins with its first reading.
        std::uint64_t origin_ns = session.status().start_ns();
        std::map<Scope, Group> groups;
        for (const CounterSeries& series : history.series()) {
            if (origin_ns == 0 && !series.points.empty()) origin_ns = series.points.front().start_ns;
            if (kind_of(series) == *by) groups[{series.key.thread, series.key.cpu_plus_1}].series.push_back(&series);
        }
        const auto view = resolve_view(*parameters, store, origin_ns);
        if (!view) return error_answer(view.error());
        const Window window{view->filter.start_ns, view->filter.end_ns, origin_ns, slices};
        JsonWriter json;
        json.object();
        json.member("session", session.id());
        json.member("data_version", store.version());
        json.member("by", *by == Breakdown::total ? "total" : *by == Breakdown::thread ? "thread" : "cpu");
        if (history.coarse_until_ns() != 0) json.member("coarse_until_ms", window.ms(history.coarse_until_ns()));
        json.key("groups");
        json.array();
        for (auto& [scope, group] : groups) {
            if (*by == Breakdown::thread && !view->filter.tids.empty() &&
                std::ranges::find(view->filter.tids, store.threads()[scope.thread].tid) == view->filter.tids.end())
                continue;
            measure(group, window);
            write_group(json, store, scope, group, window);
        }
        json.end_array();
        json.end_object();
        return json_answer(json.take());
    });
}

}  // namespace flamewire::server
