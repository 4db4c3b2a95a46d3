// Converts times between context switches to rows, with the stacks of the threads that left and of their wakers.
#include <linux/perf_event.h>

#include <algorithm>
#include <bit>

#include "agent/pipeline/folder_state.h"
#include "base/file.h"

namespace flamewire::agent {
namespace {

// How long to cache the name of a waker outside the target.
constexpr std::uint64_t external_waker_lifetime_ns = 1'000'000'000;

}  // namespace

// Returns the waker's stack as a stack of the woken thread's process, with an innermost frame that names the waker. If
// the waker is another process or an interrupt, the stack has only kernel frames, as other addresses are meaningless.
wire::Id Folder::State::fold_waker(const SampleRecord& sample, ThreadHandle woken) {
    const ProcessHandle process = processes.thread(woken).process;
    SampleRecord seen = sample;
    const ThreadHandle waker = sample.by_interrupt ? 0 : processes.newest_thread(sample.pid, sample.tid);
    const bool own = !sample.of_cpu && waker != 0 && processes.thread(waker).process == process;
    if (!own) {
        const auto user = std::ranges::find(sample.callchain, static_cast<std::uint64_t>(PERF_CONTEXT_USER));
        seen.callchain = sample.callchain.first(static_cast<std::size_t>(user - sample.callchain.begin()));
        seen.mode = wire::StackMode::fp;
        seen.ip = seen.register_abi = seen.register_mask = 0;
    }
    const wire::Id stack = fold(seen, own ? waker : woken, process).stack;
    std::string name = "an interrupt";
    if (!sample.by_interrupt) name = waker != 0 ? processes.thread(waker).comm : name_of_external_waker(sample);
    return dictionary.stack(stack, dictionary.name("[woken by " + name + "]"));
}

// Its exit is not reported, so it is not in the process table. Its name is read again after a second.
const std::string& Folder::State::name_of_external_waker(const SampleRecord& sample) {
    ExternalWaker& one = external_wakers[sample.tid % external_wakers.size()];
    if (one.tid == sample.tid && sample.time_ns - one.asked_ns < external_waker_lifetime_ns) return one.name;
    one = {sample.tid, sample.time_ns,
           read_file("/proc/" + std::to_string(sample.tid) + "/comm", 64).value_or("someone outside")};
    if (one.name.ends_with('\n')) one.name.pop_back();
    return one.name;
}

void Folder::State::add_waking(const SampleRecord& sample) {
    if (const ThreadHandle woken = off_cpu.asleep(sample.woken_tid, sample.time_ns); woken != 0)
        off_cpu.woken(sample.woken_tid, fold_waker(sample, woken), sample.cpu, sample.time_ns);
    else
        off_cpu.woken_early(sample.woken_tid, sample.time_ns);
}

void Folder::start_off_cpu(OffCpuEvents events, std::vector<KernelFunction> io_functions) {
    State& state = *state_;
    state.off_cpu_events = events;
    state.io_functions = std::move(io_functions);
    if (events.wanted == 0) state.off_cpu.forget();
    // Cached chains have no I/O wait flag yet.
    state.chains.clear();
    state.folded.clear();
}

void Folder::add_waking(const SampleRecord& sample, bool heeded) {
    ++state_->unemitted_switches;
    if (!heeded) return;
    state_->add_waking(sample);
    emit_off_cpu();  // stacks are ids of this epoch
}

bool Folder::tracks_off_cpu() const { return state_->off_cpu_events.wanted != 0; }
OffCpuTracker& Folder::off_cpu() { return state_->off_cpu; }
std::int64_t Folder::unemitted_switches() const { return state_->unemitted_switches; }

void Folder::emit_off_cpu() {
    State& state = *state_;
    const OffCpuEvents& events = state.off_cpu_events;
    for (const OffCpuTracker::Slice& slice : state.off_cpu.take_slices()) {
        const unsigned kind = static_cast<unsigned>(slice.reason);
        if ((events.wanted >> kind & 1U) == 0) continue;
        wire::Row row;
        row.bucket = slice.end_ns / wire::default_bucket_ns;
        row.event = state.event_id(events.first +
                                   static_cast<std::uint32_t>(std::popcount(events.wanted & ((1U << kind) - 1U))));
        row.thread = state.dictionary.thread(slice.thread);
        row.cpu = slice.cpu;
        row.stack = slice.stack;
        if (row.stack == 0) {
            std::string_view why = slice.born ? "[new thread]" : "[not seen leaving]";
            if (slice.reason == OffCpuReason::woken_by) why = "[not seen waking]";
            row.stack = state.dictionary.stack(0, state.dictionary.name(why));
        }
        row.count = 1;
        row.weight = slice.length_ns;
        state.add_row(row);
        --state.unemitted_switches;
    }
}

void Folder::emit_thread_times(std::uint64_t time_ns) {
    State& state = *state_;
    if (const std::uint64_t unknown_ns = state.off_cpu.take_unknown_ns(); unknown_ns != 0)
        state.add_loss({wire::LossReason::thread_state_unknown, unknown_ns, time_ns, time_ns,
                        state.event_id(state.off_cpu_events.first), 0});
    for (wire::ThreadTimes& times : state.off_cpu.take_times()) {
        if (state.next.thread_times.size() >= wire::max_batch_entries) break;  // 26,000 busy threads
        times.thread = state.dictionary.thread(times.thread);
        state.next.thread_times.push_back(std::move(times));
    }
}

}  // namespace flamewire::agent
