// The records of perf_event_open, decoded. Texts, bytes and arrays are views, see perf::Decoder. Source:
// linux/perf_event.h, enum perf_event_type.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

#include "base/bytes.h"

namespace flamewire::perf {

// What the CPU did when a record was written (PERF_RECORD_MISC_CPUMODE_MASK). Some writers of files leave it out.
enum class CpuMode : std::uint8_t { unknown, kernel, user, hypervisor, guest_kernel, guest_user };

// struct perf_branch_entry: one taken branch. The newest comes first.
struct BranchEntry {
    std::uint64_t from = 0, to = 0;
    std::uint64_t flags = 0;
};

// The pid and tid that the kernel reports for a task that has released its own: it runs until it leaves its CPU for the
// last time.
inline constexpr std::uint32_t exited_task = 0xffff'ffff;

// Fields that the event does not record are 0 or empty.
struct Sample {
    std::uint64_t id = 0;  // of the event that was opened, also for inherited events
    std::uint64_t ip = 0;
    std::uint32_t pid = 0, tid = 0;
    std::uint64_t time_ns = 0;
    std::uint64_t address = 0;  // of the data that it is about
    std::uint32_t cpu = 0;
    std::uint64_t period = 0;
    CpuMode cpu_mode = CpuMode::unknown;
    std::span<const std::uint64_t> counters;   // PERF_SAMPLE_READ, see counter_values()
    std::span<const std::uint64_t> callchain;  // raw, with PERF_CONTEXT_* markers, innermost first
    Bytes raw;                                 // the data of a tracepoint or another PMU
    std::span<const BranchEntry> branches;
    // User registers at the sample; if the kernel was interrupted, those at the system call or exception.
    std::uint64_t register_abi = 0;            // perf_sample_regs_abi; 0: none (a kernel thread, an exiting process)
    std::uint64_t register_mask = 0;           // bits of uapi/asm/perf_regs.h, …
    std::span<const std::uint64_t> registers;  // … and the values of the set bits, lowest first
    Bytes stack;                               // the user stack, starting at the stack pointer; may be empty
    bool stack_cut = false;                    // the copy ended because it was full
    std::uint64_t stack_missing = 0;           // unused bytes after the copy: an absent page, or the stack's end

    [[nodiscard]] bool user_mode() const { return cpu_mode == CpuMode::user; }
};

// MMAP and MMAP2. MMAP has neither build-id, device nor inode, and of the protection only whether code can be run.
struct MmapRecord {
    std::uint32_t pid = 0, tid = 0;
    std::uint64_t time_ns = 0;
    std::uint64_t start = 0, length = 0, page_offset = 0;
    std::uint32_t protection = 0, flags = 0;
    Bytes build_id;                                    // either build_id …
    std::uint32_t device_major = 0, device_minor = 0;  // … or device and inode; 0: unknown
    std::uint64_t inode = 0, inode_generation = 0;
    std::string_view path;
    CpuMode cpu_mode = CpuMode::unknown;

    [[nodiscard]] bool executable() const { return (protection & 4) != 0; }  // PROT_EXEC
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
    bool with_maps = true;  // of a fork: the child has its parent's mappings (perf's own records can say otherwise)
};

struct LostRecord {
    std::uint64_t id = 0, count = 0;  // id: of an event that shares the ring; 0: unknown
    std::uint64_t time_ns = 0;
    std::uint32_t cpu = 0;
    bool sideband = false;  // set by the agent: lost from the ring of process and map records
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

// Code was loaded into the kernel or removed (since Linux 5.1): a BPF program, or a trampoline or probe.
struct KsymbolRecord {
    std::uint64_t time_ns = 0;
    std::uint64_t address = 0;
    std::uint32_t size = 0;
    bool gone = false;
    std::string_view name;  // as in /proc/kallsyms: "bpf_prog_0123456789abcdef_name"
    bool of_bpf = true;     // else other code, or the type is not known
};

// The user call chain of all samples that the kernel took between one entry from user code and the return to it (since
// Linux 6.19, attr.defer_callchain). Their own chains end with a marker and the cookie, see deferred_cookie().
struct DeferredCallchain {
    std::uint64_t cookie = 0;  // identifies the entry, on all CPUs
    std::span<const std::uint64_t> callchain;
};

// All but samples and deferred call chains.
using SideRecord =
    std::variant<MmapRecord, CommRecord, TaskRecord, LostRecord, ThrottleRecord, SwitchRecord, KsymbolRecord>;

}  // namespace flamewire::perf
