// The kernel's descriptions of tracepoints, which perf and trace-cmd put into their files. Source of the format:
// tools/perf/util/trace-event-info.c of Linux.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "base/bytes.h"

namespace flamewire::profile::perf_data {

// The descriptions of all tracepoints of a kernel take about 4 MB.
inline constexpr std::size_t max_tracing_data_bytes = std::size_t{32} << 20;
// Longer names of systems and events are skipped.
inline constexpr std::size_t max_tracepoint_name_bytes = 256;

// "system:event" for each tracepoint in `ids`, as far as the bytes are complete. An id is the `config` of its
// attribute.
std::map<std::uint64_t, std::string> tracepoint_names(Bytes tracing_data, const std::set<std::uint64_t>& ids);

}  // namespace flamewire::profile::perf_data
