#include "agent/recording/requested_events.h"

#include <fmt/format.h>
#include <linux/perf_event.h>

#include <string_view>

namespace flamewire::agent {

namespace {

std::unexpected<Error> about(std::string_view setting, Error error) {
    error.message.insert(0, std::string(setting) + ": ");
    return std::unexpected(std::move(error));
}

}  // namespace

Result<RequestedEvents> parse_requested(const Settings& settings, const Sysfs& sysfs) {
    RequestedEvents wanted;
    if (settings.samples()) {
        auto events = parse_events(settings.events.empty() ? "cycles" : settings.events, sysfs);
        if (!events) return about("events", std::move(events).error());
        wanted.events = *std::move(events);
        bool filtered = settings.filter.empty();
        for (EventSpec& spec : wanted.events) {
            if ((settings.frequency_given && !spec.traced) || settings.period != 0) spec.period = 0;
            const bool tracepoint = !spec.parts.empty() && spec.parts.front().type == PERF_TYPE_TRACEPOINT;
            if (!tracepoint && !spec.probe) continue;
            filtered = true;
            if (spec.filter.empty()) spec.filter = settings.filter;
        }
        if (!filtered) return fail(ErrorCode::invalid, "filter: there is no tracepoint among the events to filter");
    }
    auto counters = parse_counters(settings.stat, sysfs);
    if (!counters) return about("stat", std::move(counters).error());
    wanted.counters = *std::move(counters);
    if (wanted.events.empty() && wanted.counters.empty()) return fail(ErrorCode::invalid, "events: none needs stat");
    return wanted;
}

std::string summarize_names(const std::vector<std::string_view>& names) {
    if (names.size() <= 1) return std::string(names.empty() ? std::string_view() : names.front());
    const std::size_t others = names.size() - 1;
    return fmt::format("{} and {} other event{}", names.front(), others, others == 1 ? "" : "s");
}

std::vector<wire::Notice> thinning_notices(const std::vector<EventSpec>& events) {
    std::vector<std::string_view> names;
    std::uint64_t period = 0;  // of all of them
    for (const EventSpec& spec : events) {
        if (spec.period <= 1 || spec.parts.front().pmu != probe_pmu) continue;
        names.push_back(spec.name);
        period = spec.period;
    }
    if (names.empty()) return {};
    return {{"events-thinned",
             fmt::format("Hits of {} are frequent, so a sample stands for {} of them.", summarize_names(names), period),
             "--count N sets how many"}};
}

}  // namespace flamewire::agent
