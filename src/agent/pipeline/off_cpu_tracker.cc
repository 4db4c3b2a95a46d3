#include "agent/pipeline/off_cpu_tracker.h"

#include <algorithm>

namespace flamewire::agent {
namespace {

// Most time between the moment when wakers see a thread as asleep and its switch record. In between, the scheduler
// picks the next thread.
constexpr std::uint64_t woken_while_leaving_ns = 50'000;

wire::ThreadState state_of(OffCpuReason reason) {
    if (reason == OffCpuReason::run_queue) return wire::ThreadState::runnable;
    return reason == OffCpuReason::io_wait ? wire::ThreadState::io_wait : wire::ThreadState::blocked;
}

}  // namespace

void OffCpuTracker::emit_slice(Thread& thread, std::uint64_t until_ns) {
    if (until_ns <= thread.since_ns) return;
    slices_.push_back(
        {thread.thread, thread.stack, thread.born, thread.cpu, thread.reason, until_ns, until_ns - thread.since_ns});
    thread.since_ns = until_ns;
}

// Adds the end of a sleep as one slice of its full length.
void OffCpuTracker::emit_waker(const Thread& thread, wire::Id stack, std::uint32_t cpu, std::uint64_t time_ns) {
    const std::uint64_t since_ns = thread.state == State::leaving ? thread.since_ns : thread.asleep_ns;
    if (time_ns > since_ns)
        slices_.push_back({thread.thread, stack, false, cpu, OffCpuReason::woken_by, time_ns, time_ns - since_ns});
}

void OffCpuTracker::spend(Thread& thread, std::uint64_t until_ns) {
    wire::ThreadTimes& times = thread.times;
    if (until_ns <= times.end_ns) return;
    const bool here = thread.state == State::on_cpu || thread.state == State::leaving;
    const wire::ThreadState state = here ? wire::ThreadState::run : state_of(thread.reason);
    times.state_ns[static_cast<std::size_t>(state)] += until_ns - times.end_ns;
    times.end_ns = until_ns;
}

void OffCpuTracker::emit_times(Thread& thread) {
    thread.busy = false;
    if (thread.times.length_ns() == 0) return;
    const std::uint64_t end_ns = thread.times.end_ns;
    thread.times.thread = thread.thread;
    times_.push_back(std::move(thread.times));
    thread.times = {};
    thread.times.end_ns = end_ns;
}

void OffCpuTracker::skip(Thread& thread, std::uint64_t until_ns) {
    if (until_ns > thread.times.end_ns) {
        if (thread.thread != 0 && thread.state != State::exited) skipped_ns_ += until_ns - thread.times.end_ns;
        move_to(thread, until_ns);
    }
    thread.began_ns = 0;
}

void OffCpuTracker::move_to(Thread& thread, std::uint64_t time_ns) {
    emit_times(thread);
    thread.times.end_ns = time_ns;
}

void OffCpuTracker::add_unknown_time(Thread& thread, std::uint64_t until_ns) {
    if (thread.state != State::unknown || until_ns <= thread.times.end_ns) return;
    unknown_ns_ += until_ns - thread.times.end_ns;
    thread.times.end_ns = until_ns;
}

// The previous state is outdated, so the thread starts over.
void OffCpuTracker::end_unknown(Thread& thread, std::uint64_t time_ns) {
    if (thread.state != State::unknown) return;
    add_unknown_time(thread, time_ns);
    thread = {};
}

void OffCpuTracker::leaves(std::uint32_t tid, ThreadHandle handle, wire::Id stack, std::uint32_t cpu,
                           OffCpuReason reason, std::uint64_t time_ns) {
    Thread& thread = threads_[tid];
    if (thread.state == State::exited) return;
    end_unknown(thread, time_ns);
    // A new thread, or one that is still off-CPU: it came back while nothing was recorded.
    if (thread.state == State::off_cpu || thread.thread == 0)
        skip(thread, time_ns);
    else if (thread.thread != handle)
        execed(tid, handle, time_ns);
    thread.thread = handle;
    thread.stack = stack;
    thread.cpu = cpu;
    thread.reason = reason;
    thread.state = State::leaving;
    thread.born = false;
    thread.since_ns = time_ns;
}

void OffCpuTracker::switched(const SwitchRecord& record) {
    const auto found = threads_.find(record.tid);
    if (found == threads_.end()) return;
    Thread& thread = found->second;
    if (thread.state == State::exited || thread.state == State::unknown) return;
    wire::ThreadTimes& times = thread.times;
    thread.busy = true;
    if (!record.out) {
        if (thread.state == State::on_cpu) {
            skip(thread, record.time_ns);  // it left in the meantime
        } else {
            if (thread.reason != OffCpuReason::run_queue) emit_waker(thread, 0, thread.cpu, record.time_ns);
            emit_slice(thread, record.time_ns);
            if (thread.state == State::leaving) thread.state = State::off_cpu;
            spend(thread, record.time_ns);
            if (thread.reason == OffCpuReason::run_queue && thread.began_ns != 0 && record.time_ns >= thread.began_ns)
                times.queued.add(record.time_ns - thread.began_ns);
        }
        thread.state = State::on_cpu;
        thread.born = false;
        thread.began_ns = record.time_ns;
        return;
    }
    if (thread.state == State::off_cpu) {
        skip(thread, record.time_ns);  // it came back in the meantime
    } else {
        if (thread.state == State::undecided) thread.state = State::on_cpu;
        spend(thread, record.time_ns);
        if (thread.began_ns != 0 && record.time_ns >= thread.began_ns)
            times.slices.add(record.time_ns - thread.began_ns);
    }
    if (thread.state != State::leaving) thread.stack = 0;
    if (record.preempted)
        thread.reason = OffCpuReason::run_queue;
    else if (thread.state != State::leaving)
        thread.reason = OffCpuReason::off_cpu;
    ++(thread.reason == OffCpuReason::run_queue ? times.preempted
       : thread.reason == OffCpuReason::io_wait ? times.io_waits
                                                : times.slept);
    thread.reason_before_early_wake_up.reset();
    const std::uint64_t early_ns = std::exchange(thread.woken_early_ns, 0);
    if (thread.reason != OffCpuReason::run_queue && early_ns != 0 && record.time_ns - early_ns < woken_while_leaving_ns)
        thread.reason_before_early_wake_up = std::exchange(thread.reason, OffCpuReason::run_queue);
    thread.state = State::off_cpu;
    thread.since_ns = thread.began_ns = thread.asleep_ns = record.time_ns;
}

ThreadHandle OffCpuTracker::asleep(std::uint32_t tid, std::uint64_t time_ns) const {
    const auto found = threads_.find(tid);
    if (found == threads_.end() || found->second.state != State::off_cpu || time_ns < found->second.since_ns) return 0;
    const bool could_run =
        found->second.reason == OffCpuReason::run_queue && !found->second.reason_before_early_wake_up;
    return could_run ? 0 : found->second.thread;
}

void OffCpuTracker::woken_early(std::uint32_t tid, std::uint64_t time_ns) {
    const auto found = threads_.find(tid);
    if (found != threads_.end() && (found->second.state == State::on_cpu || found->second.state == State::leaving))
        found->second.woken_early_ns = time_ns;
}

void OffCpuTracker::woken(std::uint32_t tid, wire::Id stack, std::uint32_t cpu, std::uint64_t time_ns) {
    Thread& thread = threads_[tid];
    if (const auto reason_before_early_wake_up = std::exchange(thread.reason_before_early_wake_up, std::nullopt))
        thread.reason = *reason_before_early_wake_up;
    emit_waker(thread, stack, cpu, time_ns);
    emit_slice(thread, time_ns);
    spend(thread, time_ns);
    thread.reason = OffCpuReason::run_queue;
    thread.since_ns = thread.began_ns = time_ns;
    thread.busy = true;
}

void OffCpuTracker::born(std::uint32_t tid, ThreadHandle thread, std::uint64_t time_ns) {
    Thread& born = threads_[tid] = {};
    born.thread = thread;
    born.reason = OffCpuReason::run_queue;
    born.state = State::off_cpu;
    born.born = true;
    born.since_ns = born.began_ns = born.times.end_ns = time_ns;
}

void OffCpuTracker::execed(std::uint32_t tid, ThreadHandle handle, std::uint64_t time_ns) {
    Thread& thread = threads_[tid];
    end_unknown(thread, time_ns);
    if (thread.state == State::off_cpu || thread.state == State::exited || thread.thread == 0) {
        skip(thread, time_ns);
    } else {
        thread.state = State::on_cpu;
        spend(thread, time_ns);
        emit_times(thread);
    }
    thread.thread = handle;
    thread.state = State::on_cpu;
    thread.busy = true;
}

void OffCpuTracker::exited(std::uint32_t tid, std::uint64_t time_ns) {
    Thread& thread = threads_[tid];
    end_unknown(thread, time_ns);
    const ThreadHandle handle = thread.thread;
    if (thread.state == State::undecided)
        skip(thread, time_ns);
    else if (handle != 0)
        spend(thread, time_ns);
    emit_times(thread);
    thread = {};
    thread.thread = handle;
    thread.state = State::exited;
    thread.times.end_ns = time_ns;
}

void OffCpuTracker::found(std::uint32_t tid, ThreadHandle handle, OffCpuReason reason, std::uint64_t begin_ns) {
    const auto [place, added] = threads_.try_emplace(tid);
    Thread& thread = place->second;
    if (!added && thread.state != State::unknown) return;
    if (handle == 0) handle = thread.thread;
    end_unknown(thread, begin_ns);
    thread.thread = handle;
    thread.reason = reason;
    thread.state = reason == OffCpuReason::run_queue ? State::undecided : State::off_cpu;
    thread.since_ns = thread.asleep_ns = thread.times.end_ns = begin_ns;
}

std::vector<std::uint32_t> OffCpuTracker::threads_in(State state) const {
    std::vector<std::uint32_t> all;
    for (const auto& [tid, thread] : threads_)
        if (thread.state == state) all.push_back(tid);
    return all;
}

void OffCpuTracker::decide(std::uint32_t tid, std::optional<OffCpuReason> reason) {
    const auto found = threads_.find(tid);
    if (found == threads_.end() || found->second.state != State::undecided) return;
    Thread& thread = found->second;
    if (std::exchange(thread.seen, reason) != reason || !reason) return;
    thread.seen.reset();
    thread.reason = *reason;
    thread.state = *reason == OffCpuReason::run_queue ? State::on_cpu : State::off_cpu;
    thread.asleep_ns = thread.since_ns;
}

void OffCpuTracker::gap(std::uint64_t from_ns, std::uint64_t to_ns, Gap gap) {
    for (auto& [tid, thread] : threads_) {
        if (thread.state == State::off_cpu || thread.state == State::leaving) emit_slice(thread, from_ns);
        if (thread.state == State::exited) continue;
        if (thread.state == State::unknown) {
            add_unknown_time(thread, from_ns);
            if (gap == Gap::pause) thread.times.end_ns = std::max(thread.times.end_ns, to_ns);
            continue;
        }
        if (thread.state == State::undecided)
            skip(thread, from_ns);
        else
            spend(thread, from_ns);
        if (gap == Gap::exchange && thread.state == State::off_cpu) continue;
        if (to_ns > thread.times.end_ns) move_to(thread, to_ns);
        thread.began_ns = 0;
        if (thread.state == State::on_cpu)
            thread.state = State::undecided, thread.stack = 0, thread.reason = OffCpuReason::off_cpu,
            thread.seen.reset();
        thread.since_ns = thread.asleep_ns = to_ns;
    }
}

void OffCpuTracker::forget() {
    for (auto& [tid, thread] : threads_) emit_times(thread);
    threads_.clear();
}

void OffCpuTracker::on_lost_records() {
    lost_records_ = true;
    unknown_ns_ += std::exchange(skipped_ns_, 0);
    for (auto& [tid, thread] : threads_) {
        if (thread.state == State::exited || thread.state == State::unknown) continue;
        // Off-CPU slices and thread times must end at the same point.
        if (thread.state == State::off_cpu) emit_slice(thread, thread.times.end_ns);
        emit_times(thread);
        thread.state = State::unknown;
        thread.stack = 0;
    }
}

// After a loss, a thread that /proc reported as runnable may still be undecided.
void OffCpuTracker::finish(std::uint64_t time_ns) {
    cut(time_ns);
    for (auto& [tid, thread] : threads_) {
        if (!lost_records_ || thread.state != State::undecided) continue;
        thread.state = State::unknown;
        add_unknown_time(thread, time_ns);
    }
}

void OffCpuTracker::cut(std::uint64_t time_ns) {
    std::erase_if(threads_, [&](const auto& one) {
        return one.second.state == State::exited && one.second.times.end_ns + 1'000'000'000 < time_ns;
    });
    for (auto& [tid, thread] : threads_) {
        if (thread.state == State::off_cpu) emit_slice(thread, time_ns);
        add_unknown_time(thread, time_ns);
        thread.busy = true;
    }
    cut_times(time_ns);
}

void OffCpuTracker::cut_times(std::uint64_t time_ns) {
    for (auto& [tid, thread] : threads_) {
        const bool nothing_known =
            thread.state == State::undecided || thread.state == State::exited || thread.state == State::unknown;
        if (!thread.busy || nothing_known) continue;
        spend(thread, time_ns);
        emit_times(thread);
    }
}

std::vector<wire::Id*> OffCpuTracker::stacks() {
    std::vector<wire::Id*> stacks;
    for (auto& [tid, thread] : threads_)
        if (thread.state != State::on_cpu && thread.stack != 0) stacks.push_back(&thread.stack);
    return stacks;
}

}  // namespace flamewire::agent
