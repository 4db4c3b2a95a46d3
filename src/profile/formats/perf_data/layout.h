// Constants of the perf.data format. Sources: linux/perf_event.h (what the kernel writes), and
// tools/perf/Documentation/perf.data-file-format.txt (perf's own records and header).
#pragma once

#include <cstddef>
#include <cstdint>

namespace flamewire::profile::perf_data {

namespace record {
inline constexpr std::uint32_t mmap = 1, lost = 2, comm = 3, exit = 4, throttle = 5, unthrottle = 6, fork = 7, read = 8,
                               sample = 9, mmap2 = 10, aux = 11, itrace_start = 12, lost_samples = 13, context = 14,
                               context_cpu_wide = 15, namespaces = 16, ksymbol = 17, bpf_event = 18, cgroup = 19,
                               text_poke = 20, aux_output_id = 21, callchain_deferred = 22;
// From here on, the types are perf's own.
inline constexpr std::uint32_t attribute = 64, event_type = 65, tracing_data = 66, build_id = 67, finished_round = 68,
                               id_index = 69, auxtrace_info = 70, auxtrace = 71, auxtrace_error = 72, thread_map = 73,
                               cpu_map = 74, stat_config = 75, stat = 76, stat_round = 77, event_update = 78,
                               time_conversion = 79, feature = 80, compressed = 81, finished_init = 82,
                               compressed2 = 83;
// From here on, the types are simpleperf's own. Their size has 32 bits: the upper half is in the field `misc`.
inline constexpr std::uint32_t first_of_simpleperf = 32768;
}  // namespace record

namespace misc {
inline constexpr std::uint16_t cpu_mode = 7, kernel = 1, user = 2, hypervisor = 3, guest_kernel = 4, guest_user = 5;
inline constexpr std::uint16_t comm_exec = 1 << 13, mmap_data = 1 << 13, fork_exec = 1 << 13, mmap_build_id = 1 << 14,
                               build_id_size = 1 << 15;
}  // namespace misc

namespace sample {
inline constexpr std::uint64_t ip = 1 << 0, tid = 1 << 1, time = 1 << 2, address = 1 << 3, read = 1 << 4,
                               callchain = 1 << 5, id = 1 << 6, cpu = 1 << 7, period = 1 << 8, stream_id = 1 << 9,
                               raw = 1 << 10, branch_stack = 1 << 11, regs_user = 1 << 12, stack_user = 1 << 13,
                               identifier = 1 << 16;
}  // namespace sample

namespace read_format {
inline constexpr std::uint64_t time_enabled = 1, time_running = 2, id = 4, group = 8, lost = 16;
}  // namespace read_format

namespace branch {
inline constexpr std::uint64_t call_stack = 1 << 11, hardware_index = 1 << 17, counters = 1 << 19;
inline constexpr std::size_t entry_size = 24;
}  // namespace branch

namespace feature {
inline constexpr unsigned build_id = 2, hostname = 3, os_release = 4, version = 5, arch = 6, cpus = 7,
                          command_line = 11, event_desc = 12, auxtrace = 18, sample_time = 21, clock_data = 29,
                          simpleperf_files = 128, told_names = 240 /* our own */, count = 256;
}  // namespace feature

// Call chain entries (context markers) that give the mode of the entries after them. All are >= context_max.
namespace chain {
inline constexpr std::uint64_t context_max = static_cast<std::uint64_t>(-4095);
inline constexpr std::uint64_t kernel = static_cast<std::uint64_t>(-128), user = static_cast<std::uint64_t>(-512);
inline constexpr std::uint64_t guest = static_cast<std::uint64_t>(-2048);
}  // namespace chain

inline constexpr std::size_t header_size = 8;  // of a record: u32 type, u16 misc, u16 size

}  // namespace flamewire::profile::perf_data
