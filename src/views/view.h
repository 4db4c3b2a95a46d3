// The part of a profile that a view shows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "profile/store/model.h"
#include "profile/store/store.h"

namespace flamewire::views {

struct Parameters {
    std::string event;  // as requested; empty: the first
    double start_ms = 0;
    std::optional<double> end_ms;
    std::vector<std::uint32_t> pids, tids;
    std::vector<std::string> containers, pods, cgroups;  // by display name, see base/cgroup_path.h
};

// The parameters resolved against a store: the event found, times absolute.
struct View {
    profile::Filter filter;
    profile::EventId event = 0;  // 0: the session has no events yet
    std::string event_name, unit;
};
// not_found: there is no such event. invalid: a base name matches several.
Result<View> resolve_view(const Parameters& parameters, const profile::Store& store, std::uint64_t start_ns);

// How a view is split: not at all, or by thread or CPU.
enum class Breakdown : std::uint8_t { total, thread, cpu };

// 100 * part / whole; 0 if `whole` is 0.
double percent(std::uint64_t part, std::uint64_t whole);

}  // namespace flamewire::views
