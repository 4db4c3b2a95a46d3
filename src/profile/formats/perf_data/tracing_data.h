// The kernel's descriptions of tracepoints, which perf and trace-cmd put into their files. Source of the format:
// tools/perf/util/trace-event-info.c of Linux.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "base/bytes.h"

namespace flamewire::profile::perf_data {

// Those of all systems of one kernel have 4 MB.
inline constexpr std::size_t most_tracing_data_bytes = std::size_t{32} << 20;

// "system:event" by the event's id, which is the `config` of a tracepoint's attribute; as far as the bytes are whole.
std::map<std::uint64_t, std::string> tracepoint_names(Bytes tracing_data);

}  // namespace flamewire::profile::perf_data
