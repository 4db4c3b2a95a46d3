// The sampler's part in times between context switches: finds the kernel functions that wait for I/O, scans the states
// of threads whose switches were not recorded, and emits slices in time.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "agent/perf/merge.h"
#include "agent/perf/open_error.h"
#include "agent/perf/threads.h"
#include "agent/process/kallsyms.h"
#include "agent/recording/sampler.h"
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

// Scans all kernel symbols. Call it before the events are opened, because rings are not read during the scan.
void Sampler::find_io_functions(const EventChoice& choice) {
    if (io_functions_ || !choice.kernel) return;
    for (const EventSpec& spec : choice.events)
        if ((spec.off_cpu & io_wait_bit) != 0) io_functions_ = find_kernel_functions("/proc", io_wait_functions);
}

void Sampler::start_off_cpu(OffCpuEvents events) {
    std::vector<KernelFunction> functions;
    if ((events.wanted & io_wait_bit) != 0) {
        if (setup_.choice.kernel && io_functions_) functions = *io_functions_;
        if (!setup_.choice.kernel)
            batch_.add_notice(
                "io-wait-unknown",
                "Without kernel functions waits for devices are not distinguished from others: they are off-cpu.",
                std::string(setup_.plan.settings.kernel ? remedy_paranoid : "leave out --no-kernel"));
        else if (functions.empty())
            batch_.add_notice(
                "io-wait-unknown",
                "The kernel hides its names, so waits for devices are not distinguished from others: they are "
                "off-cpu.",
                kernel_names_problem(read_kernel_base("/proc"), "/proc").value_or(wire::Notice{}).remedy);
    }
    folder_.start_off_cpu(events, std::move(functions));
    off_cpu_cut_ns_ = monotonic_ns();
}

// Threads that sleep now count as asleep since `begin_ns`, unless records contradict. Events must be open already, so
// that every later switch is recorded.
void Sampler::scan_threads(std::uint64_t begin_ns) {
    if (!folder_.tracks_off_cpu()) return;
    for (const std::uint32_t pid : members_.living())
        for (const std::uint32_t tid : list_threads(pid)) {
            const auto state = read_task_stat(pid, tid);
            const auto reason = state ? off_cpu_reason(state->state) : std::nullopt;
            if (!reason) continue;
            ThreadHandle thread = processes_.newest_thread(pid, tid);
            if (thread == 0) thread = processes_.thread_of(pid, tid, begin_ns);
            folder_.off_cpu().found(tid, thread, *reason, begin_ns);
        }
    // In a recording of processes, threads in an unknown state have exited.
    for (const std::uint32_t tid : folder_.off_cpu().unknown_threads()) {
        const auto state = setup_.plan.scope.wide ? read_task_stat(tid) : std::nullopt;
        if (const auto reason = state ? off_cpu_reason(state->state) : std::nullopt)
            folder_.off_cpu().found(tid, 0, *reason, begin_ns);
        else
            folder_.off_cpu().remove(tid);
    }
}

void Sampler::track_off_cpu(const Record& record) {
    if (const auto* change = std::get_if<SwitchRecord>(&record)) {
        folder_.off_cpu().switched(*change);
        if (folder_.off_cpu().has_slices()) folder_.emit_off_cpu();
    } else if (const auto* task = std::get_if<TaskRecord>(&record)) {
        if (task->exit)
            folder_.off_cpu().exited(task->tid, task->time_ns);
        else if (events_.sampling() && task->time_ns >= events_.sideband_from_ns())
            folder_.off_cpu().born(task->tid, processes_.thread_of(task->pid, task->tid, task->time_ns), task->time_ns);
    } else if (const auto* comm = std::get_if<CommRecord>(&record)) {
        if (comm->exec && events_.sampling())
            folder_.off_cpu().execed(comm->tid, processes_.thread_of(comm->pid, comm->tid, comm->time_ns),
                                     comm->time_ns);
    } else if (std::holds_alternative<LostRecord>(record)) {
        folder_.off_cpu().on_lost_records();
        folder_.emit_off_cpu();
        threads_unknown_ = true;
    }
}

// Call it when all records until `drained_ns` are processed, except those that the merge holds back.
void Sampler::cut_off_cpu(std::uint64_t drained_ns) {
    if (!folder_.tracks_off_cpu() || !events_.sampling()) return;
    if (std::exchange(threads_unknown_, false)) scan_threads(monotonic_ns());
    const std::uint64_t until = (drained_ns - 2 * merge_slack_ns) / times_step_ns * times_step_ns;
    if (until <= off_cpu_cut_ns_) return;
    OffCpuTracker& tracker = folder_.off_cpu();
    for (const std::uint32_t tid : tracker.undecided()) {
        const auto state = read_task_stat(tid);
        tracker.decide(tid, state ? off_cpu_reason(state->state) : std::nullopt);
    }
    if (until / second_ns > off_cpu_cut_ns_ / second_ns) {
        tracker.cut(until / second_ns * second_ns);
        folder_.emit_off_cpu();
        batch_.mark();
    }
    tracker.cut_times(until);
    off_cpu_cut_ns_ = until;
    folder_.emit_thread_times(until);
}

}  // namespace flamewire::agent
