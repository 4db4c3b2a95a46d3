// Constants of the perf.data format that are perf's own. Source:
// tools/perf/Documentation/perf.data-file-format.txt.
#pragma once

#include <cstdint>

namespace flamewire::profile::perf_data {

// Types of records. The kernel's are in perf/abi.h.
namespace tool_record {
inline constexpr std::uint32_t attribute = 64, event_type = 65, tracing_data = 66, build_id = 67, finished_round = 68,
                               id_index = 69, auxtrace_info = 70, auxtrace = 71, auxtrace_error = 72, thread_map = 73,
                               cpu_map = 74, stat_config = 75, stat = 76, stat_round = 77, event_update = 78,
                               time_conversion = 79, feature = 80, compressed = 81, finished_init = 82,
                               compressed2 = 83;
// From here on, the types are simpleperf's own. Their size has 32 bits: the upper half is in the field `misc`.
inline constexpr std::uint32_t first_of_simpleperf = 32768;
}  // namespace tool_record

namespace tool_misc {
inline constexpr std::uint16_t build_id_size = 1 << 15;
}  // namespace tool_misc

namespace feature {
inline constexpr unsigned build_id = 2, hostname = 3, os_release = 4, version = 5, arch = 6, cpus = 7,
                          command_line = 11, event_desc = 12, auxtrace = 18, sample_time = 21, clock_data = 29,
                          simpleperf_files = 128, embedded_symbols = 240 /* our own */, count = 256;
}  // namespace feature

}  // namespace flamewire::profile::perf_data
