#include "agent/pipeline/absences.h"

namespace flamewire::agent {

void Absences::tell(Thread& thread, std::uint64_t until_ns) {
    if (until_ns <= thread.since_ns) return;
    pieces_.push_back(
        {thread.thread, thread.stack, thread.born, thread.cpu, thread.kind, until_ns, until_ns - thread.since_ns});
    thread.since_ns = until_ns;
}

// Away still: it came back while nothing was recorded.
void Absences::leaves(std::uint32_t tid, ThreadHandle thread, wire::Id stack, std::uint32_t cpu, Away kind,
                      std::uint64_t time_ns) {
    threads_[tid] = {thread, stack, cpu, kind, State::leaving, false, time_ns};
}

void Absences::switched(const SwitchRecord& record) {
    const auto found = threads_.find(record.tid);
    if (found == threads_.end()) return;
    Thread& thread = found->second;
    if (!record.out) {
        if (thread.state != State::here) tell(thread, record.time_ns);
        thread.state = State::here;
        thread.born = false;
        return;
    }
    if (thread.state != State::leaving) thread.stack = 0;
    if (record.preempted)
        thread.kind = Away::run_queue;
    else if (thread.state != State::leaving)
        thread.kind = Away::off_cpu;
    thread.state = State::away;
    thread.since_ns = record.time_ns;
}

void Absences::born(std::uint32_t tid, ThreadHandle thread, std::uint64_t time_ns) {
    threads_[tid] = {thread, 0, 0, Away::run_queue, State::away, true, time_ns};
}

void Absences::found(std::uint32_t tid, ThreadHandle thread, Away kind, std::uint64_t begin_ns) {
    const State state = kind == Away::run_queue ? State::maybe_away : State::away;
    threads_.try_emplace(tid, Thread{thread, 0, 0, kind, state, false, begin_ns});
}

void Absences::gap(std::uint64_t from_ns, std::uint64_t to_ns) {
    for (auto& [tid, thread] : threads_) {
        if (thread.state == State::away || thread.state == State::leaving) tell(thread, from_ns);
        if (thread.state == State::here)
            thread.state = State::maybe_away, thread.stack = 0, thread.kind = Away::off_cpu;
        thread.since_ns = to_ns;
    }
}

void Absences::cut(std::uint64_t time_ns) {
    for (auto& [tid, thread] : threads_)
        if (thread.state == State::away) tell(thread, time_ns);
}

std::vector<wire::Id*> Absences::stacks() {
    std::vector<wire::Id*> stacks;
    for (auto& [tid, thread] : threads_)
        if (thread.state != State::here && thread.stack != 0) stacks.push_back(&thread.stack);
    return stacks;
}

}  // namespace flamewire::agent
