// Field numbers of docs/wire.proto, shared by the encoder and the decoder.
#pragma once

#include <cstdint>

namespace flamewire::wire::field {

using Tag = std::uint32_t;

namespace batch {
inline constexpr Tag recording_id = 1, epoch = 2, seq = 3, first_seq = 4, monotonic_ns = 5, realtime_ns = 6,
                     recording = 7;
inline constexpr Tag string_base = 10, strings = 11, module_base = 12, modules = 13, location_base = 14, locations = 15,
                     stack_base = 16, stacks = 17, process_base = 18, processes = 19, thread_base = 20, threads = 21,
                     event_base = 22, events = 23;
inline constexpr Tag rows = 30, lifecycle = 31, losses = 32, symbols = 33, notices = 34, agent = 35, end = 36,
                     unwinds = 37, counters = 38, thread_times = 39;
}  // namespace batch

namespace recording {
inline constexpr Tag target = 1, pids = 2, host = 3, arch = 4, kernel_release = 5, agent_version = 6, boot_id = 7,
                     frequency_hz = 8, period = 9, effective_frequency_hz = 10, unwind = 11, kernel = 12,
                     interval_ms = 13, start_ns = 14, page_size = 15, cpus = 16, stack_bytes = 17, max_depth = 18,
                     changed_ns = 19, gap_ns = 20;
}  // namespace recording

namespace module {
inline constexpr Tag kind = 1, path = 2, build_id = 3, device = 4, inode = 5, size = 6, mtime_ns = 7;
}  // namespace module

namespace locations {
inline constexpr Tag module = 1, address_delta = 2, flags = 3, name = 4, file = 5, line = 6;
}  // namespace locations

namespace stacks {
inline constexpr Tag parent_distance = 1, location_back = 2;
}  // namespace stacks

namespace process {
inline constexpr Tag pid = 1, ns_pid = 2, parent_pid = 3, start_time_ns = 4, exec_generation = 5, comm = 6, exe = 7,
                     command_line = 8, cgroup = 9, container_id = 10;
}  // namespace process

namespace thread {
inline constexpr Tag process = 1, tid = 2, comm = 3;
}  // namespace thread

namespace event {
inline constexpr Tag name = 1, unit = 2, frequency_hz = 3, period = 4;
}  // namespace event

namespace rows {
inline constexpr Tag base_bucket = 1, bucket_ns = 2, bucket_span = 3, group_event = 4, group_thread = 5, group_cpu = 6,
                     group_rows = 7, key_delta = 8, count = 9, weight = 10;
}  // namespace rows

namespace lifecycle {
inline constexpr Tag kind = 1, time_ns = 2, thread = 3, comm = 4;
}  // namespace lifecycle

namespace loss {
inline constexpr Tag reason = 1, count = 2, first_ns = 3, last_ns = 4, event = 5, cpu_plus_1 = 6;
}  // namespace loss

namespace symbol {
inline constexpr Tag module = 1, address = 2, size = 3, name = 4;
}  // namespace symbol

namespace notice {
inline constexpr Tag code = 1, text = 2, remedy = 3;
}  // namespace notice

namespace process_unwind {
inline constexpr Tag process = 1, mode = 2, why = 3, samples = 4, whole = 5, joined = 6, truncated = 7, open_end = 8,
                     stopped = 9, frames = 10, stack_bytes = 11;
}  // namespace process_unwind

namespace counters {
inline constexpr Tag start_ns = 1, end_ns = 2, after_gap = 3, name = 4, unit = 5, part = 6, thread = 7, cpu_plus_1 = 8,
                     status = 9, value = 10, enabled_ns = 11, running_ns = 12;
}  // namespace counters

namespace thread_times {
inline constexpr Tag thread = 1, end_ns = 2, run_ns = 3, runnable_ns = 4, blocked_ns = 5, io_wait_ns = 6, preempted = 7,
                     slept = 8, io_waits = 9, slices = 10, queued = 11;
}  // namespace thread_times

namespace durations {
inline constexpr Tag sum_ns = 1, min_ns = 2, max_ns = 3, bucket_delta = 4, count = 5;
}  // namespace durations

namespace agent {
inline constexpr Tag cpu_ns = 1, rss_bytes = 2, ring_bytes = 3, samples_read = 4, samples_duplicate = 5,
                     samples_lost = 6, queue_batches = 7, spool_bytes = 8, late_records = 9;
}  // namespace agent

namespace end {
inline constexpr Tag reason = 1, exit_code = 2;
}  // namespace end

}  // namespace flamewire::wire::field
