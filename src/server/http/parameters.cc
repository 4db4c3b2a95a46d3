#include "server/http/parameters.h"

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

Result<std::uint64_t> parse_slices(const Request& request, std::uint64_t standard, std::uint64_t most) {
    const std::string_view text = request.parameter("slices");
    if (text.empty()) return standard;
    const std::uint64_t slices = TRY(parse_integer("slices", text));
    if (slices == 0 || slices > most)
        return fail(ErrorCode::invalid, fmt::format("slices must be between 1 and {}", most));
    return slices;
}

Result<views::Breakdown> parse_breakdown(std::string_view text) {
    if (text.empty() || text == "total") return views::Breakdown::total;
    if (text == "thread") return views::Breakdown::thread;
    if (text == "cpu") return views::Breakdown::cpu;
    return fail(ErrorCode::invalid, "by must be total, thread or cpu");
}

Result<views::Parameters> parse_view(const Request& request, std::string_view prefix) {
    const auto name = [&](std::string_view of) { return std::string(prefix) + std::string(of); };
    const std::string start = name("start"), end = name("end"), pid = name("pid"), tid = name("tid");
    views::Parameters view;
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

}  // namespace flamewire::server
