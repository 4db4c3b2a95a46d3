// Tracepoints and where tracefs describes them. Pure: takes a view of sysfs. Source of the format files:
// Documentation/trace/events.rst.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/perf/event_spec.h"
#include "base/result.h"

namespace flamewire::agent {

// Folders, relative to /sys, where tracefs is or may be mounted. The first one that contains an event is used.
std::vector<std::string> tracefs_folders(const Sysfs& sysfs);

// Adds the tracepoint as a part of `spec`, with its unit and fields. Errors: invalid, not_found (no such tracepoint, or
// tracefs is not mounted), or permission (tracefs is not readable).
Result<bool> find_tracepoint(EventSpec& spec, std::string_view system, std::string_view event, const Sysfs& sysfs);

// Gives all parts of `spec` the values that each of them has, in the same order: the sites of a USDT probe can differ.
void keep_common_values(EventSpec& spec);

// The tracepoints of a system whose names match a pattern with `*`, sorted. Errors as of find_tracepoint().
Result<std::vector<std::string>> matching_tracepoints(std::string_view system, std::string_view pattern,
                                                      const Sysfs& sysfs);

// The fields of a tracepoint that exists.
Result<std::vector<perf::TracepointField>> tracepoint_fields(std::string_view system, std::string_view event,
                                                             const Sysfs& sysfs);

}  // namespace flamewire::agent
