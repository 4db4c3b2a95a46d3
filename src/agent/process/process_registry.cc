#include "agent/process/process_registry.h"

#include <algorithm>

namespace flamewire::agent {
namespace {

// Long enough for a batch to name what ended while it was filled: about 8,000 threads can begin and end in 250 ms.
constexpr std::size_t max_ended_processes = 1024;
constexpr std::size_t max_ended_threads = 8192;

}  // namespace

bool ReadBudget::take(std::uint64_t now_ns) {
    const std::uint64_t refills = now_ns > refilled_ns_ ? (now_ns - refilled_ns_) / interval_ns_ : 0;
    if (refills > 0) {
        credit_ = static_cast<unsigned>(std::min<std::uint64_t>(burst, credit_ + refills));
        refilled_ns_ = now_ns;
    }
    if (credit_ == 0) return false;
    --credit_;
    return true;
}

void ReadBudget::found_nothing() { interval_ns_ = std::min(longest_ns, interval_ns_ * 2); }

ProcessState& ProcessRegistry::add_process(ProcessInfo info) {
    const ProcessHandle handle = ++last_process_;
    auto state = std::make_unique<ProcessState>(handle, generations_);
    state->info = std::move(info);
    ProcessState& process = *state;
    processes_.emplace(handle, std::move(state));
    by_pid_[process.info.pid] = &process;
    return process;
}

ThreadHandle ProcessRegistry::add_thread(ProcessState& process, std::uint32_t tid, std::string_view comm) {
    const ThreadHandle handle = ++last_thread_;
    ThreadState& thread = threads_[handle];
    thread.info = {process.handle, tid, comm.empty() ? process.info.comm : std::string(comm)};
    process.threads.push_back(handle);
    by_tid_[tid] = handle;
    return handle;
}

ProcessState* ProcessRegistry::by_pid(std::uint32_t pid) {
    const auto found = by_pid_.find(pid);
    return found == by_pid_.end() ? nullptr : found->second;
}

ProcessState* ProcessRegistry::by_handle(ProcessHandle handle) const {
    if (found_ != nullptr && found_->handle == handle) return found_;
    const auto found = processes_.find(handle);
    if (found == processes_.end()) return nullptr;
    found_ = found->second.get();
    return found_;
}

ThreadHandle ProcessRegistry::thread_by_tid(std::uint32_t tid) const {
    const auto found = by_tid_.find(tid);
    return found == by_tid_.end() ? 0 : found->second;
}

ThreadState* ProcessRegistry::thread(ThreadHandle handle) {
    const auto found = threads_.find(handle);
    return found == threads_.end() ? nullptr : &found->second;
}

const ThreadState* ProcessRegistry::thread(ThreadHandle handle) const {
    const auto found = threads_.find(handle);
    return found == threads_.end() ? nullptr : &found->second;
}

void ProcessRegistry::end_thread(ThreadHandle handle) {
    ThreadState* state = thread(handle);
    if (state == nullptr || state->ended) return;
    state->ended = true;
    if (ProcessState* process = by_handle(state->info.process)) std::erase(process->threads, handle);
    ended_threads_.push_back(handle);
    while (ended_threads_.size() > max_ended_threads) {
        forget_thread(ended_threads_.front());
        ended_threads_.pop_front();
    }
}

void ProcessRegistry::end_process(ProcessState& process) {
    if (process.ended) return;
    process.ended = true;
    for (const ThreadHandle handle : std::vector<ThreadHandle>(process.threads)) end_thread(handle);
    ended_processes_.push_back(process.handle);
    while (ended_processes_.size() > max_ended_processes) {
        forget_process(ended_processes_.front());
        ended_processes_.pop_front();
    }
}

void ProcessRegistry::forget_process(ProcessHandle handle) {
    const auto found = processes_.find(handle);
    if (found == processes_.end() || !found->second->ended) return;  // it may have turned out to be alive
    const auto named = by_pid_.find(found->second->info.pid);
    if (named != by_pid_.end() && named->second == found->second.get()) by_pid_.erase(named);
    found_ = nullptr;
    processes_.erase(found);
}

void ProcessRegistry::forget_thread(ThreadHandle handle) {
    const auto found = threads_.find(handle);
    if (found == threads_.end()) return;
    const auto named = by_tid_.find(found->second.info.tid);
    if (named != by_tid_.end() && named->second == handle) by_tid_.erase(named);
    threads_.erase(found);
}

void ProcessRegistry::mark_all_suspect() {
    for (auto& [handle, process] : processes_)
        if (!process->ended) process->suspect = true;
}

std::vector<ProcessHandle> ProcessRegistry::live() const {
    std::vector<ProcessHandle> handles;
    for (const auto& [handle, process] : processes_)
        if (!process->ended) handles.push_back(handle);
    return handles;
}

}  // namespace flamewire::agent
