#include "views/view.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace flamewire::views {
namespace {

// ms since the session's start as CLOCK_MONOTONIC, clamped to the type's range.
std::uint64_t absolute_ns(std::uint64_t start_ns, double ms) {
    constexpr double latest = 9e18;
    const double ns = static_cast<double>(start_ns) + ms * 1e6;
    if (ns <= 0) return 0;
    if (ns >= latest) return std::numeric_limits<std::uint64_t>::max();
    // Add integers: after weeks of uptime, a double of nanoseconds rounds to half a microsecond.
    const auto delta = static_cast<std::int64_t>(std::llround(ms * 1e6));
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(start_ns) + delta);
}

// "cycles" matches "cycles:u" and "cpu_core/cycles/".
bool is_variant(std::string_view event, std::string_view base) {
    if (event.starts_with(base) && event.size() > base.size() && event[base.size()] == ':') return true;
    const std::size_t slash = event.find('/');
    if (slash == std::string_view::npos) return false;
    const std::string_view inner = event.substr(slash + 1);
    return inner.starts_with(base) && inner.size() > base.size() &&
           (inner[base.size()] == '/' || inner[base.size()] == ',');
}

}  // namespace

double percent(std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

Result<View> resolve_view(const Parameters& parameters, const profile::Store& store, std::uint64_t start_ns) {
    View view;
    const auto events = store.events();
    std::vector<profile::EventId> variants;
    for (profile::EventId id = 1; id < events.size(); ++id) {
        if (parameters.event.empty() || events[id].name == parameters.event) {
            view.event = id;
            break;
        }
        if (is_variant(events[id].name, parameters.event)) variants.push_back(id);
    }
    if (view.event == 0 && variants.size() == 1) view.event = variants.front();
    if (view.event == 0 && variants.size() > 1) {
        std::string names;
        for (const auto id : variants) names += (names.empty() ? "" : ", ") + events[id].name;
        return fail(ErrorCode::invalid, fmt::format("event {} is ambiguous: {}", parameters.event, names));
    }
    if (view.event == 0 && !parameters.event.empty())
        return fail(ErrorCode::not_found, fmt::format("the session has no event {}", parameters.event));
    if (view.event != 0) {
        view.filter.event = view.event;
        view.event_name = events[view.event].name;
        view.unit = events[view.event].unit;
    }
    view.filter.start_ns = parameters.start_ms <= 0 ? 0 : absolute_ns(start_ns, parameters.start_ms);
    if (parameters.end_ms) view.filter.end_ns = absolute_ns(start_ns, *parameters.end_ms);
    view.filter.pids = parameters.pids;
    view.filter.tids = parameters.tids;
    view.filter.containers = parameters.containers;
    view.filter.pods = parameters.pods;
    view.filter.cgroups = parameters.cgroups;
    return view;
}

}  // namespace flamewire::views
