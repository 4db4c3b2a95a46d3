// Constants of linux/perf_event.h, up to Linux 6.19. They are the same on all machines, and newer than the headers that
// this is built with.
#pragma once

#include <cstddef>
#include <cstdint>

namespace flamewire::perf {

namespace record {  // enum perf_event_type
inline constexpr std::uint32_t mmap = 1, lost = 2, comm = 3, exit = 4, throttle = 5, unthrottle = 6, fork = 7, read = 8,
                               sample = 9, mmap2 = 10, aux = 11, itrace_start = 12, lost_samples = 13,
                               context_switch = 14, context_switch_cpu_wide = 15, namespaces = 16, ksymbol = 17,
                               bpf_event = 18, cgroup = 19, text_poke = 20, callchain_deferred = 22;
}  // namespace record

namespace misc {  // PERF_RECORD_MISC_*
inline constexpr std::uint16_t cpu_mode = 7, kernel = 1, user = 2, guest_kernel = 4, guest_user = 5;
inline constexpr std::uint16_t mmap_data = 1 << 13, comm_exec = 1 << 13, fork_exec = 1 << 13, switch_out = 1 << 13,
                               mmap_build_id = 1 << 14, switch_preempted = 1 << 14;
}  // namespace misc

namespace sample {  // enum perf_event_sample_format
inline constexpr std::uint64_t ip = 1 << 0, tid = 1 << 1, time = 1 << 2, address = 1 << 3, read = 1 << 4,
                               callchain = 1 << 5, id = 1 << 6, cpu = 1 << 7, period = 1 << 8, stream_id = 1 << 9,
                               raw = 1 << 10, branch_stack = 1 << 11, regs_user = 1 << 12, stack_user = 1 << 13,
                               identifier = 1 << 16;
}  // namespace sample

namespace read_format {  // enum perf_event_read_format
inline constexpr std::uint64_t time_enabled = 1, time_running = 2, id = 4, group = 8, lost = 16;
}  // namespace read_format

namespace branch {  // enum perf_branch_sample_type
inline constexpr std::uint64_t call_stack = 1 << 11, hardware_index = 1 << 17, counters = 1 << 19;
}  // namespace branch

// Entries of a call chain that give the mode of those after them (enum perf_callchain_context). All are >= max.
namespace context {
inline constexpr std::uint64_t max = static_cast<std::uint64_t>(-4095);
inline constexpr std::uint64_t hypervisor = static_cast<std::uint64_t>(-32), kernel = static_cast<std::uint64_t>(-128),
                               user = static_cast<std::uint64_t>(-512),
                               user_deferred = static_cast<std::uint64_t>(-640),
                               guest = static_cast<std::uint64_t>(-2048),
                               guest_kernel = static_cast<std::uint64_t>(-2176),
                               guest_user = static_cast<std::uint64_t>(-2560);
}  // namespace context

inline constexpr std::uint32_t tracepoint_type = 2;  // PERF_TYPE_TRACEPOINT
inline constexpr std::size_t header_size = 8;        // of a record: struct perf_event_header

}  // namespace flamewire::perf
