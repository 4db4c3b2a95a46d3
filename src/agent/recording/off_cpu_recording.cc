#include "agent/recording/off_cpu_recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "agent/perf/merge.h"
#include "agent/perf/open_error.h"
#include "agent/perf/threads.h"
#include "base/clock.h"

namespace flamewire::agent {
namespace {

constexpr std::uint8_t io_wait_bit = 1U << static_cast<unsigned>(OffCpuReason::io_wait);
constexpr std::uint64_t second_ns = 1'000'000'000;
constexpr std::uint64_t times_step_ns = 100'000'000;

// In these functions, the kernel counts a sleeping thread as waiting for I/O (in_iowait, kernel/sched/core.c).
constexpr std::array<std::string_view, 4> io_wait_functions{"io_schedule", "io_schedule_timeout", "mutex_lock_io",
                                                            "mutex_lock_io_nested"};

// Converts a thread state from /proc. Empty if the thread has exited.
std::optional<OffCpuReason> off_cpu_reason(char state) {
    if (state == 'R') return OffCpuReason::run_queue;
    if (state == 'Z' || state == 'X') return std::nullopt;
    return OffCpuReason::off_cpu;
}

}  // namespace

void OffCpuRecording::find_io_functions(const EventChoice& choice) {
    if (io_functions_ || !choice.kernel) return;
    for (const EventSpec& spec : choice.events)
        if ((spec.off_cpu & io_wait_bit) != 0) io_functions_ = find_kernel_functions("/proc", io_wait_functions);
}

void OffCpuRecording::start(OffCpuEvents events) {
    std::vector<KernelFunction> functions;
    if ((events.wanted & io_wait_bit) != 0) {
        if (parts_.setup.choice.kernel && io_functions_) functions = *io_functions_;
        if (!parts_.setup.choice.kernel)
            parts_.batch.add_notice(
                "io-wait-unknown",
                "Without kernel functions waits for devices are not distinguished from others: they are off-cpu.",
                std::string(parts_.setup.plan.settings.kernel ? remedy_paranoid : "leave out --no-kernel"));
        else if (functions.empty())
            parts_.batch.add_notice(
                "io-wait-unknown",
                "The kernel hides its names, so waits for devices are not distinguished from others: they are "
                "off-cpu.",
                kernel_names_problem(read_kernel_base("/proc"), "/proc").value_or(wire::Notice{}).remedy);
    }
    parts_.folder.start_off_cpu(events, std::move(functions));
    cut_ns_ = monotonic_ns();
}

void OffCpuRecording::scan_threads(std::uint64_t begin_ns) {
    if (!parts_.folder.tracks_off_cpu()) return;
    OffCpuTracker& tracker = parts_.folder.off_cpu();
    for (const std::uint32_t pid : parts_.members.living())
        for (const std::uint32_t tid : list_threads(pid)) {
            const auto state = read_task_stat(pid, tid);
            const auto reason = state ? off_cpu_reason(state->state) : std::nullopt;
            if (!reason) continue;
            ThreadHandle thread = parts_.processes.newest_thread(pid, tid);
            if (thread == 0) thread = parts_.processes.thread_of(pid, tid, begin_ns);
            tracker.found(tid, thread, *reason, begin_ns);
        }
    // In a recording of processes, threads in an unknown state have exited.
    for (const std::uint32_t tid : tracker.unknown_threads()) {
        const auto state = parts_.setup.plan.scope.wide ? read_task_stat(tid) : std::nullopt;
        if (const auto reason = state ? off_cpu_reason(state->state) : std::nullopt)
            tracker.found(tid, 0, *reason, begin_ns);
        else
            tracker.remove(tid);
    }
}

void OffCpuRecording::track(const SwitchRecord& change) {
    OffCpuTracker& tracker = parts_.folder.off_cpu();
    tracker.switched(change);
    if (tracker.has_slices()) parts_.folder.emit_off_cpu();
}

void OffCpuRecording::track(const TaskRecord& task) {
    OffCpuTracker& tracker = parts_.folder.off_cpu();
    if (task.exit)
        tracker.exited(task.tid, task.time_ns);
    else if (parts_.events.sampling() && task.time_ns >= parts_.events.sideband_from_ns())
        tracker.born(task.tid, parts_.processes.thread_of(task.pid, task.tid, task.time_ns), task.time_ns);
}

void OffCpuRecording::track(const CommRecord& comm) {
    if (comm.exec && parts_.events.sampling())
        parts_.folder.off_cpu().execed(comm.tid, parts_.processes.thread_of(comm.pid, comm.tid, comm.time_ns),
                                       comm.time_ns);
}

void OffCpuRecording::track(const LostRecord& /*lost*/) {
    parts_.folder.off_cpu().on_lost_records();
    parts_.folder.emit_off_cpu();
    threads_unknown_ = true;
}

void OffCpuRecording::cut(std::uint64_t drained_ns) {
    if (!parts_.folder.tracks_off_cpu() || !parts_.events.sampling()) return;
    if (std::exchange(threads_unknown_, false)) scan_threads(monotonic_ns());
    const std::uint64_t until = (drained_ns - 2 * merge_slack_ns) / times_step_ns * times_step_ns;
    if (until <= cut_ns_) return;
    OffCpuTracker& tracker = parts_.folder.off_cpu();
    for (const std::uint32_t tid : tracker.undecided()) {
        const auto state = read_task_stat(tid);
        tracker.decide(tid, state ? off_cpu_reason(state->state) : std::nullopt);
    }
    if (until / second_ns > cut_ns_ / second_ns) {
        tracker.cut(until / second_ns * second_ns);
        parts_.folder.emit_off_cpu();
        parts_.batch.mark();
    }
    tracker.cut_times(until);
    cut_ns_ = until;
    parts_.folder.emit_thread_times(until);
}

}  // namespace flamewire::agent
