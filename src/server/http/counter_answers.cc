#include "server/http/counter_answers.h"

#include "base/json_writer.h"
#include "server/http/flamegraph.h"
#include "server/http/parameters.h"
#include "views/counters.h"

namespace flamewire::server {
namespace {

using wire::CounterStatus;
using Interval = views::CounterCurve::Interval;

constexpr double ns_per_ms = 1e6;
constexpr std::uint64_t default_slices = 300, max_slices = 2000;

void write_line(JsonWriter& json, const counters::Line& line) {
    json.member("name", line.sum.name);
    json.member("unit", line.sum.unit);
    json.member("status", views::name_of(line.sum.status));
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

// `ms`: a time in ms of the session.
template <class Ms>
void write_group(JsonWriter& json, const profile::Store& store, const views::CounterGroup& group, Ms ms) {
    json.object();
    if (group.scope.thread != 0) {
        json.key("thread");
        json.object();
        write_thread(json, store.threads()[group.scope.thread]);
        json.end_object();
    }
    if (group.scope.cpu_plus_1 != 0) json.member("cpu", group.scope.cpu_plus_1 - 1);
    json.member("first_ms", ms(group.first_ns));
    json.member("elapsed_ms", static_cast<double>(group.elapsed_ns) / ns_per_ms);
    auto curve = group.curves.begin();
    json.list("counters", group.lines, [&](const counters::Line& line) {
        json.object();
        write_line(json, line);
        json.list("parts", line.parts, [&](const counters::Line& part) {
            json.object();
            json.member("part", part.sum.part);
            write_line(json, part);
            json.end_object();
        });
        if (curve->coverage_percent) json.member("coverage_percent", *curve->coverage_percent);
        json.key("series");
        json.object();
        json.list("start_ms", curve->intervals, [&](const Interval& one) { json.number(ms(one.start_ns)); });
        json.list("end_ms", curve->intervals, [&](const Interval& one) { json.number(ms(one.end_ns)); });
        json.list("value", curve->intervals, [&](const Interval& one) { json.number(one.value); });
        json.end_object();
        json.end_object();
        ++curve;
    });
    json.end_object();
}

}  // namespace

Answer counters_answer(const Session& session, const Request& request) {
    const auto by = parse_breakdown(request.parameter("by"));
    if (!by) return error_answer(by.error());
    auto parameters = parse_view(request);
    if (!parameters) return error_answer(parameters.error());
    parameters->event.clear();
    const auto slices = parse_slices(request, default_slices, max_slices);
    if (!slices) return error_answer(slices.error());
    return session.read([&](const profile::Store& store) -> Answer {
        // A session without samples begins with its first reading.
        std::uint64_t origin_ns = session.status().start_ns();
        for (const profile::CounterSeries& series : store.counters().series())
            if (origin_ns == 0 && !series.points.empty()) origin_ns = series.points.front().start_ns;
        const auto view = resolve_view(*parameters, store, origin_ns);
        if (!view) return error_answer(view.error());
        const auto ms = [&](std::uint64_t time_ns) {
            return (static_cast<double>(time_ns) - static_cast<double>(origin_ns)) / ns_per_ms;
        };
        JsonWriter json;
        json.object();
        json.member("session", session.id());
        json.member("data_version", store.version());
        json.member("by", *by == views::Breakdown::total    ? "total"
                          : *by == views::Breakdown::thread ? "thread"
                                                            : "cpu");
        const std::uint64_t coarse_ns = store.counters().coarse_until_ns();
        if (coarse_ns != 0) json.member("coarse_until_ms", ms(coarse_ns));
        json.list("groups", views::counter_groups(store, view->filter, *by, *slices),
                  [&](const views::CounterGroup& group) { write_group(json, store, group, ms); });
        json.end_object();
        return json_answer(json.take());
    });
}

}  // namespace flamewire::server
