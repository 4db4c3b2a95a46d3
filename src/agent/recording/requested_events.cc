#include "agent/recording/requested_events.h"

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
            if (settings.frequency_given || settings.period != 0) spec.period = 0;
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

}  // namespace flamewire::agent
