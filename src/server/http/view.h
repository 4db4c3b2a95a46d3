// The parameters that every view takes: event start end pid tid container pod cgroup.
#pragma once

#include <string>

#include "profile/store/model.h"
#include "profile/store/store.h"
#include "server/http/request.h"

namespace flamewire::server {

struct ViewParameters {
    std::string event;  // as requested; empty: the first
    double start_ms = 0;
    std::optional<double> end_ms;
    std::vector<std::uint32_t> pids, tids;
    std::vector<std::string> containers, pods, cgroups;  // by display name, see base/cgroup_path.h
};
// invalid: the message names the parameter. `prefix` precedes all parameter names except the event's. The baseline of a
// comparison uses "base_".
Result<ViewParameters> parse_view(const Request& request, std::string_view prefix = "");

// The parameters resolved against a store: the event found, times absolute.
struct View {
    profile::Filter filter;
    profile::EventId event = 0;  // 0: the session has no events yet
    std::string event_name, unit;
};
// not_found: there is no such event. invalid: a base name matches several.
Result<View> resolve_view(const ViewParameters& parameters, const profile::Store& store, std::uint64_t start_ns);

// How a view is split: not at all, or by thread or CPU.
enum class Breakdown : std::uint8_t { total, thread, cpu };
// An empty text means total.
Result<Breakdown> parse_breakdown(std::string_view text);

// Parses the whole text as a finite number, or as an unsigned integer.
Result<double> parse_number(std::string_view name, std::string_view text);
Result<std::uint64_t> parse_integer(std::string_view name, std::string_view text);

}  // namespace flamewire::server
