#include "server/http/view.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

namespace flamewire::server {
namespace {

Result<std::vector<std::uint32_t>> parse_ids(std::string_view name, std::string_view text) {
    std::vector<std::uint32_t> ids;
    while (!text.empty()) {
        const std::size_t comma = text.find(',');
        const std::uint64_t id = TRY(parse_integer(name, text.substr(0, comma)));
        if (id > std::numeric_limits<std::uint32_t>::max() || ids.size() == 10'000)
            return fail(ErrorCode::invalid, fmt::format("{} is out of range", name));
        ids.push_back(static_cast<std::uint32_t>(id));
        text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
    }
    return ids;
}

Result<std::vector<std::string>> parse_names(std::string_view name, std::string_view text) {
    constexpr std::size_t most = 1'000;
    std::vector<std::string> names;
    while (!text.empty()) {
        const std::size_t comma = text.find(',');
        if (const std::string_view one = text.substr(0, comma); !one.empty()) names.emplace_back(one);
        if (names.size() > most)
            return fail(ErrorCode::invalid, fmt::format("{} must be a list of at most {}", name, most));
        text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
    }
    return names;
}

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

Result<double> parse_number(std::string_view name, std::string_view text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
        return fail(ErrorCode::invalid, fmt::format("{} is not a number: {:.40}", name, text));
    return value;
}

Result<std::uint64_t> parse_integer(std::string_view name, std::string_view text) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size())
        return fail(ErrorCode::invalid, fmt::format("{} is not a whole number: {:.40}", name, text));
    return value;
}

Result<Breakdown> parse_breakdown(std::string_view text) {
    if (text.empty() || text == "total") return Breakdown::total;
    if (text == "thread") return Breakdown::thread;
    if (text == "cpu") return Breakdown::cpu;
    return fail(ErrorCode::invalid, "by must be total, thread or cpu");
}

Result<ViewParameters> parse_view(const Request& request, std::string_view prefix) {
    const auto name = [&](std::string_view of) { return std::string(prefix) + std::string(of); };
    const std::string start = name("start"), end = name("end"), pid = name("pid"), tid = name("tid");
    ViewParameters view;
    view.event = std::string(request.parameter("event"));
    if (const auto text = request.parameter(start); !text.empty()) view.start_ms = TRY(parse_number(start, text));
    if (const auto text = request.parameter(end); !text.empty()) view.end_ms = TRY(parse_number(end, text));
    if (view.end_ms && *view.end_ms < view.start_ms)
        return fail(ErrorCode::invalid, fmt::format("{} is before {}", end, start));
    view.pids = TRY(parse_ids(pid, request.parameter(pid)));
    view.tids = TRY(parse_ids(tid, request.parameter(tid)));
    const std::string container = name("container"), pod = name("pod"), cgroup = name("cgroup");
    view.containers = TRY(parse_names(container, request.parameter(container)));
    view.pods = TRY(parse_names(pod, request.parameter(pod)));
    view.cgroups = TRY(parse_names(cgroup, request.parameter(cgroup)));
    return view;
}

Result<View> resolve_view(const ViewParameters& parameters, const profile::Store& store, std::uint64_t start_ns) {
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

}  // namespace flamewire::server
