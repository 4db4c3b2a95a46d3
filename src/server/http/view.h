// The parameters that every view takes: event start end pid tid container pod cgroup.
#pragma once

#include <string>

#include "profile/store/model.h"
#include "profile/store/store.h"
#include "server/http/request.h"

namespace flamewire::server {

struct ViewParameters {
    std::string event;  // as asked; empty: the first
    double start_ms = 0;
    std::optional<double> end_ms;
    std::vector<std::uint32_t> pids, tids;
    std::vector<std::string> containers, pods, cgroups;  // as people name them, see base/cgroup_path.h
};
// invalid with a sentence that names the parameter. `prefix` stands before the names of all but the event: the baseline
// of a comparison has "base_".
Result<ViewParameters> parse_view(const Request& request, std::string_view prefix = "");

// The same against a store: event found, times absolute.
struct View {
    profile::Filter filter;
    profile::EventId event = 0;  // 0: the session has no events yet
    std::string event_name, unit;
};
// not_found when there is no such event, invalid when a base name fits several.
Result<View> resolve_view(const ViewParameters& parameters, const profile::Store& store, std::uint64_t start_ns);

// What is shown apart: all together, or each thread or CPU.
enum class Breakdown : std::uint8_t { total, thread, cpu };
// Empty: total.
Result<Breakdown> parse_breakdown(std::string_view text);

// A finite number, or an unsigned integer, of the whole text.
Result<double> parse_number(std::string_view name, std::string_view text);
Result<std::uint64_t> parse_integer(std::string_view name, std::string_view text);

}  // namespace flamewire::server
