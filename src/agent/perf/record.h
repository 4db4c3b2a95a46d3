// One parsed perf record: a view into the ring (or into a copy of a wrapped record), valid only during the call that
// delivers it. Source: linux/perf_event.h, enum perf_event_type. Decoding follows the attribute's sample_type in parse
// order.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

#include "base/bytes.h"
#include "base/result.h"
#include "wire/batch.h"

namespace flamewire::agent {

// struct perf_branch_entry: one taken branch. The newest comes first.
struct BranchEntry {
    std::uint64_t from = 0, to = 0;
    std::uint64_t flags = 0;
};

// The pid and tid that the kernel reports for a task that has released its own: it runs until it leaves its CPU for the
// last time.
inline constexpr std::uint32_t exited_task = 0xffff'ffff;

struct SampleRecord {
    std::uint64_t id = 0;  // PERF_SAMPLE_IDENTIFIER of the event that we opened, also for inherited events
    std::uint64_t ip = 0;
    std::uint32_t pid = 0, tid = 0;
    std::uint64_t time_ns = 0;
    std::uint32_t cpu = 0;
    std::uint64_t period = 0;
    bool user_mode = false;                    // whether user mode was interrupted (misc cpumode)
    std::span<const std::uint64_t> callchain;  // raw, with PERF_CONTEXT_* markers, innermost first

    // The other fields depend on the event that took the sample. `mode` determines how to find the user's stack.
    wire::StackMode mode = wire::StackMode::fp;
    // User registers at the sample; if the kernel was interrupted, those at the system call or exception.
    std::uint64_t register_abi = 0;            // perf_sample_regs_abi; 0: none (a kernel thread, an exiting process)
    std::uint64_t register_mask = 0;           // bits of uapi/asm/perf_regs.h, …
    std::span<const std::uint64_t> registers;  // … and the values of the set bits, lowest first
    Bytes stack;                               // the user stack, starting at the stack pointer; may be empty
    bool stack_cut = false;                    // the copy ended because it was full
    std::uint64_t stack_missing = 0;           // unused bytes after the copy: an absent page, or the stack's end
    bool copy_omitted = false;                 // the process has stack copies, but not for this event
    std::span<const BranchEntry> branches;     // calls that have not returned (lbr)

    // For a wake-up: the woken thread, …
    std::uint32_t woken_tid = 0;  // 0: not a wake-up
    bool by_interrupt = false;    // … whether an interrupt woke it, not the thread that it interrupted, …
    bool of_cpu = false;          // … and whether the event belongs to a CPU, next to those of the target's threads
};

struct Mmap2Record {
    std::uint32_t pid = 0, tid = 0;
    std::uint64_t time_ns = 0;
    std::uint64_t start = 0, length = 0, page_offset = 0;
    std::uint32_t protection = 0, flags = 0;
    Bytes build_id;                                    // either build_id …
    std::uint32_t device_major = 0, device_minor = 0;  // … or device and inode
    std::uint64_t inode = 0, inode_generation = 0;
    std::string_view path;
};

struct CommRecord {
    std::uint32_t pid = 0, tid = 0;
    std::uint64_t time_ns = 0;
    bool exec = false;
    std::string_view comm;
};

// FORK and EXIT. A new thread has pid == parent_pid.
struct TaskRecord {
    bool exit = false;
    std::uint32_t pid = 0, parent_pid = 0, tid = 0, parent_tid = 0;
    std::uint64_t time_ns = 0;
};

struct LostRecord {
    std::uint64_t id = 0, count = 0;
    std::uint64_t time_ns = 0;
    std::uint32_t cpu = 0;
    bool sideband = false;  // lost from the ring of process and map records
};

struct ThrottleRecord {
    bool unthrottle = false;
    std::uint64_t id = 0;
    std::uint64_t time_ns = 0;
};

// A thread left its CPU or returned to one, from an event with attr.context_switch.
struct SwitchRecord {
    std::uint32_t tid = 0;
    std::uint64_t time_ns = 0;
    bool out = false;
    bool preempted = false;  // switched out while still runnable (since Linux 4.17; false before)
};

// A BPF program was loaded or unloaded (since Linux 5.1).
struct KsymbolRecord {
    std::uint64_t time_ns = 0;
    std::uint64_t address = 0;
    std::uint32_t size = 0;
    bool gone = false;
    std::string_view name;  // as in /proc/kallsyms: "bpf_prog_0123456789abcdef_name"
};

using Record = std::variant<SampleRecord, Mmap2Record, CommRecord, TaskRecord, LostRecord, ThrottleRecord, SwitchRecord,
                            KsymbolRecord>;

// Receives records in time order, on the thread that drains.
class RecordSink {
public:
    virtual void on_record(const Record& record) = 0;

protected:
    ~RecordSink() = default;
};

}  // namespace flamewire::agent
