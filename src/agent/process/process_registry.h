// The processes and threads that the table knows, and how long it remembers them. Bookkeeping only: no /proc, no
// records.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "agent/process/process_table.h"
#include "agent/process/shared_space.h"

namespace flamewire::agent {

// How often /proc/PID/maps of one process may be read: a burst of 8, then ten times a second, and ever more rarely
// (down to once in ten seconds) while it brings nothing new.
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
    SharedSpace space;
    std::vector<ThreadHandle> threads;  // not exited, as far as known

    // Until the kernel's part of an exec is over, the user registers are still the old program's.
    std::optional<SharedSpace> before_exec;
    std::uint64_t exec_ns = 0;

    ModuleHandle jit_module = 0;  // of the code that it made itself; 0: none was sampled
    std::string jitdump;          // the file that it mapped to say so; empty: none

    bool noted = false;  // only its name, parent and start time were read
    bool maps_known = false;
    bool exe_pending = false;  // the next file mapping is the main image of an exec
    bool ended = false;
    bool suspect = false;  // records were lost: read anew before the next sample
    bool barren =
        false;  // the last look into /proc did not explain an address: do not look again until something changes
    bool maps_forbidden = false;  // we lack the right to read its maps
    std::uint64_t ended_ns = 0;
    std::uint64_t info_read_ns =
        0;  // /proc showed it at this time: older records of its birth, exec and names are in `info` already
    std::uint64_t maps_read_ns = 0;  // start of the last read of its maps: older MMAP2 records are in it already
    unsigned unexplained = 0;        // addresses in no mapping that were asked for since its maps are known
    std::uint64_t retry_ns = std::numeric_limits<std::uint64_t>::max();  // when unknown addresses deserve another look
    ReadBudget budget;
};

struct ThreadState {
    ThreadInfo info;
    bool ended = false;
    std::uint64_t read_ns = 0;  // /proc showed it at this time; 0: known from records alone
};

class ProcessRegistry {
public:
    ProcessState& add_process(ProcessInfo info);
    // `comm` empty: the process's.
    ThreadHandle add_thread(ProcessState& process, std::uint32_t tid, std::string_view comm);

    // Newest process of this pid, ended ones too while remembered.
    ProcessState* by_pid(std::uint32_t pid);
    [[nodiscard]] ProcessState* by_handle(ProcessHandle handle) const;
    // Newest thread of this tid; 0: none.
    [[nodiscard]] ThreadHandle thread_by_tid(std::uint32_t tid) const;
    ThreadState* thread(ThreadHandle handle);
    [[nodiscard]] const ThreadState* thread(ThreadHandle handle) const;

    void end_thread(ThreadHandle handle);
    // Ends its threads too. Forgets the process that ended longest ago when there are too many of them.
    void end_process(ProcessState& process);
    void mark_all_suspect();

    // All processes that have not ended, for a sweep of those whose end we missed.
    [[nodiscard]] std::vector<ProcessHandle> live() const;
    [[nodiscard]] std::size_t thread_count() const { return threads_.size(); }
    [[nodiscard]] std::size_t process_count() const { return processes_.size(); }

private:
    void forget_process(ProcessHandle handle);
    void forget_thread(ThreadHandle handle);

    std::uint64_t generations_ = 0;
    mutable ProcessState* found_ = nullptr;  // by its handle, last: a sample asks for its own again and again
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
