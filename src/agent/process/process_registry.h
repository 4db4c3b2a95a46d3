// The processes and threads that the table tracks, and how long it keeps them. Bookkeeping only: no /proc, no records.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "agent/process/process_table.h"
#include "process/shared_space.h"

namespace flamewire::agent {

// How often /proc/PID/maps of one process may be read: a burst of 8, then ten times per second. While reads find
// nothing new, the rate falls to once per ten seconds.
class ReadBudget {
public:
    bool take(std::uint64_t now_ns);
    // When take() will succeed again.
    [[nodiscard]] std::uint64_t next_ns() const { return refilled_ns_ + interval_ns_; }
    void found_nothing();
    void found_something() { interval_ns_ = shortest_ns; }

private:
    static constexpr std::uint64_t shortest_ns = 100'000'000, longest_ns = 10'000'000'000;
    static constexpr unsigned burst = 8;
    unsigned credit_ = burst;
    std::uint64_t refilled_ns_ = 0;
    std::uint64_t interval_ns_ = shortest_ns;
};

struct ProcessState {
    ProcessState(ProcessHandle handle_in, std::uint64_t& generations) : handle(handle_in), space(generations) {}

    ProcessHandle handle;
    ProcessInfo info;
    process::SharedSpace space;
    std::vector<ThreadHandle> threads;  // not exited, as far as known

    // Until the kernel's part of an exec is over, the user registers still belong to the old program.
    std::optional<process::SharedSpace> before_exec;
    std::uint64_t exec_ns = 0;

    ModuleHandle jit_module = 0;  // module for its JIT code; 0: none was sampled
    std::string jitdump;          // the jitdump file that it mapped; empty: none

    bool noted = false;  // only its name, parent and start time were read
    bool maps_known = false;
    bool exe_pending = false;  // the next file mapping is the main image of an exec
    bool ended = false;
    bool suspect = false;         // records were lost: read it again before the next sample
    bool barren = false;          // the last read of /proc did not explain an address: wait for a change
    bool maps_forbidden = false;  // no permission to read its maps
    std::uint64_t ended_ns = 0;
    std::uint64_t info_read_ns = 0;  // when /proc was read: `info` includes older records of its birth, exec and names
    std::uint64_t maps_read_ns = 0;  // start of the last read of its maps, which include older MMAP2 records
    unsigned unexplained = 0;        // lookups of unmapped addresses since the maps are known
    std::uint64_t retry_ns = std::numeric_limits<std::uint64_t>::max();  // when unknown addresses are looked up again
    ReadBudget budget;
};

struct ThreadState {
    ThreadInfo info;
    bool ended = false;
    std::uint64_t read_ns = 0;  // when /proc was read; 0: known only from records
};

class ProcessRegistry {
public:
    ProcessState& add_process(ProcessInfo info);
    // If `comm` is empty, the thread gets the name of its process.
    ThreadHandle add_thread(ProcessState& process, std::uint32_t tid, std::string_view comm);

    // The newest process with this pid, including ended ones that are still kept.
    ProcessState* by_pid(std::uint32_t pid);
    [[nodiscard]] ProcessState* by_handle(ProcessHandle handle) const;
    // The newest thread with this tid; 0: none.
    [[nodiscard]] ThreadHandle thread_by_tid(std::uint32_t tid) const;
    ThreadState* thread(ThreadHandle handle);
    [[nodiscard]] const ThreadState* thread(ThreadHandle handle) const;

    void end_thread(ThreadHandle handle);
    // Also ends its threads. If there are too many ended processes, removes the one that ended first.
    void end_process(ProcessState& process);
    void mark_all_suspect();

    // All processes that have not ended, to sweep those whose end was missed.
    [[nodiscard]] std::vector<ProcessHandle> live() const;
    [[nodiscard]] std::size_t thread_count() const { return threads_.size(); }
    [[nodiscard]] std::size_t process_count() const { return processes_.size(); }

private:
    void forget_process(ProcessHandle handle);
    void forget_thread(ThreadHandle handle);

    std::uint64_t generations_ = 0;
    mutable ProcessState* found_ = nullptr;  // last process found by handle: samples repeat the same one
    ProcessHandle last_process_ = 0;
    ThreadHandle last_thread_ = 0;
    std::unordered_map<ProcessHandle, std::unique_ptr<ProcessState>> processes_;
    std::unordered_map<std::uint32_t, ProcessState*> by_pid_;
    std::unordered_map<ThreadHandle, ThreadState> threads_;
    std::unordered_map<std::uint32_t, ThreadHandle> by_tid_;
    std::deque<ProcessHandle> ended_processes_;  // oldest first
    std::deque<ThreadHandle> ended_threads_;
};

}  // namespace flamewire::agent
