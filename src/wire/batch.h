// One batch as values, and its protobuf form. docs/wire.proto is the schema and says what every field means; this
// header says it once more only where the C++ form differs: columns are rows here, deltas are absolute values.
// Pure: bytes in, values out. The agent encodes, the server decodes; no reference is resolved here, but decode
// guarantees that columns had one length and that numbers fit their types.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "wire/durations.h"

namespace flamewire::wire {

inline constexpr std::uint32_t default_bucket_ns = 10'000'000;

// What one batch may carry at most; decode refuses more, so that a few bytes from outside never become gigabytes. An
// encoder keeps below: rows, locations and stack nodes each, any other list each, events of an epoch.
inline constexpr std::size_t max_batch_rows = std::size_t{1} << 20;
inline constexpr std::size_t max_batch_entries = std::size_t{1} << 18;
inline constexpr std::size_t max_events = 4096;

using RecordingId = std::array<std::uint8_t, 16>;

// Index into one of an epoch's tables; 0 is reserved (empty, none, root).
using Id = std::uint32_t;

struct Recording {
    std::string target;
    std::vector<std::uint32_t> pids;
    std::string host, arch, kernel_release, agent_version, boot_id;
    std::uint32_t frequency_hz = 0;
    std::uint64_t period = 0;
    std::uint32_t effective_frequency_hz = 0;
    std::string unwind;             // as asked for: "auto", "fp", "dwarf", "lbr"
    std::uint32_t stack_bytes = 0;  // copied with a sample in dwarf mode
    std::uint32_t max_depth = 0;    // frames of a stack at most
    bool kernel = false;
    std::uint32_t interval_ms = 0;
    std::uint64_t start_ns = 0;
    std::uint32_t page_size = 0;
    std::uint32_t cpus = 0;
    std::uint64_t changed_ns = 0;  // when a person last changed what is recorded; 0: never
    std::uint64_t gap_ns = 0;      // from then on nothing was sampled for so long
    bool operator==(const Recording&) const = default;
};

enum class ModuleKind : std::uint8_t { file, kernel, vdso, jit };

struct Module {
    ModuleKind kind = ModuleKind::file;
    Id path = 0;
    std::string build_id;  // raw bytes
    std::uint64_t device = 0, inode = 0, size = 0;
    std::int64_t mtime_ns = 0;
    bool operator==(const Module&) const = default;
};

namespace location_flag {
inline constexpr std::uint32_t return_address = 1;
inline constexpr std::uint32_t kernel_mode = 2;
inline constexpr std::uint32_t joined = 4;   // not read with this sample, but taken from the thread's last stacks
inline constexpr std::uint32_t inlined = 8;  // of a name: inlined into its caller, as an imported file says
}  // namespace location_flag

struct Location {
    Id module = 0;
    std::uint64_t address = 0;
    std::uint32_t flags = 0;
    Id name = 0, file = 0;
    std::uint32_t line = 0;
    bool operator==(const Location&) const = default;
};

struct StackNode {
    Id parent = 0;
    Id location = 0;
    bool operator==(const StackNode&) const = default;
};

struct Process {
    std::uint32_t pid = 0, ns_pid = 0, parent_pid = 0;
    std::uint64_t start_time_ns = 0;
    std::uint32_t exec_generation = 0;
    Id comm = 0, exe = 0, command_line = 0, cgroup = 0, container_id = 0;
    bool operator==(const Process&) const = default;
};

struct Thread {
    Id process = 0;
    std::uint32_t tid = 0;
    Id comm = 0;
    bool operator==(const Thread&) const = default;
};

struct Event {
    Id name = 0, unit = 0;
    std::uint32_t frequency_hz = 0;
    std::uint64_t period = 0;
    bool operator==(const Event&) const = default;
};

struct Row {
    std::uint64_t bucket = 0;  // time / Batch::bucket_ns
    Id event = 0;
    Id thread = 0;
    std::uint32_t cpu = 0;
    Id stack = 0;
    std::uint32_t count = 0;
    std::uint64_t weight = 0;  // in the event's unit
    bool operator==(const Row&) const = default;
};

enum class LifecycleKind : std::uint8_t { fork, exec, exit, comm };

struct Lifecycle {
    LifecycleKind kind = LifecycleKind::fork;
    std::uint64_t time_ns = 0;
    Id thread = 0;
    Id comm = 0;
    bool operator==(const Lifecycle&) const = default;
};

enum class LossReason : std::uint8_t {
    unknown,
    ring_full,
    throttled,
    spool_full,
    queue_full,
    stack_truncated,
    maps_lost,
    unknown_process,
    time_coarsened,
    other_server,
    batches_missing,
    thread_state_unknown,  // nanoseconds
};

struct Loss {
    LossReason reason = LossReason::unknown;
    std::uint64_t count = 0;
    std::uint64_t first_ns = 0, last_ns = 0;
    Id event = 0;
    std::uint32_t cpu_plus_1 = 0;
    bool operator==(const Loss&) const = default;
};

struct Symbol {
    Id module = 0;
    std::uint64_t address = 0, size = 0;
    Id name = 0;
    bool operator==(const Symbol&) const = default;
};

struct Notice {
    std::string code, text, remedy;
    bool operator==(const Notice&) const = default;
};

// How the user stacks of a process are found.
enum class StackMode : std::uint8_t {
    fp,      // the kernel's frame-pointer chain
    hybrid,  // the chain, its innermost frames by unwind tables from registers and a small stack copy
    dwarf,   // unwind tables from registers and a large stack copy
    lbr,     // the CPU's branch records
};

// What became of the user stacks of one process since the recording began; the newest entry of a process holds.
struct ProcessUnwind {
    Id process = 0;
    StackMode mode = StackMode::fp;
    std::string why;                // one sentence: what was measured
    std::uint64_t samples = 0;      // with a user stack
    std::uint64_t whole = 0;        // of these: reached the root,
    std::uint64_t joined = 0;       // … reached it, completed from the thread's last stacks,
    std::uint64_t truncated = 0;    // … deeper than the copy, or than the frame limit,
    std::uint64_t open_end = 0;     // … a frame-pointer chain that ended; whether at the root, nobody knows,
    std::uint64_t stopped = 0;      // … ended for any other reason
    std::uint64_t frames = 0;       // in all of them
    std::uint64_t stack_bytes = 0;  // copied by the kernel
    bool operator==(const ProcessUnwind&) const = default;
};

// What a counter can say of one interval.
enum class CounterStatus : std::uint8_t {
    counted,       // value, enabled_ns and running_ns hold
    not_counted,   // opened, but it had no turn on the PMU in this interval: nobody knows
    unsupported,   // this kernel, CPU or virtual machine has no such event
    never_counts,  // it opens here, but stays at 0 while it should not: as good as unsupported
    forbidden,     // the kernel refuses it to us
};

// One counter over one interval. The values of a total counter's intervals add up to its total; so do those of its
// parts.
struct CounterValue {
    Id name = 0;    // string: as asked for, "cycles"
    Id unit = 0;    // string: "cycles", "ns", "faults", "events", …
    Id part = 0;    // string: the PMU of a hybrid CPU that counted it ("cpu_atom"); 0: there are no parts
    Id thread = 0;  // 0: the whole target
    std::uint32_t cpu_plus_1 = 0;  // 0: all CPUs
    CounterStatus status = CounterStatus::counted;
    std::uint64_t value = 0;       // as counted, not scaled
    std::uint64_t enabled_ns = 0;  // of CPU time in which it should have counted, …
    std::uint64_t running_ns = 0;  // … and in which it had a counter of the PMU
    bool operator==(const CounterValue&) const = default;
};

// One reading of all counters.
struct CounterReading {
    std::uint64_t start_ns = 0, end_ns = 0;  // CLOCK_MONOTONIC; readings of a scope follow each other without a gap …
    bool after_gap = false;                  // … except here: it was not counted before
    std::vector<CounterValue> values;
    bool operator==(const CounterReading&) const = default;
};

// What a thread did with a stretch of its life.
enum class ThreadState : std::uint8_t {
    run,       // on a CPU
    runnable,  // it could run, and waited for a CPU
    blocked,   // asleep
    io_wait,   // asleep where the kernel counts waits for devices
};
inline constexpr std::size_t thread_states = 4;

// The stretch ends at end_ns and is as long as its states together; those of a thread follow each other, with gaps where
// nobody knows.
struct ThreadTimes {
    Id thread = 0;
    std::uint64_t end_ns = 0;  // CLOCK_MONOTONIC
    std::array<std::uint64_t, thread_states> state_ns{};
    // How often it left a CPU: though it could have run on, asleep, asleep for a device.
    std::uint64_t preempted = 0, slept = 0, io_waits = 0;
    Durations slices;  // on a CPU, from coming to leaving; those that ended in the stretch
    Durations queued;  // runnable, until it ran; those that ended in the stretch

    [[nodiscard]] std::uint64_t length_ns() const { return state_ns[0] + state_ns[1] + state_ns[2] + state_ns[3]; }
    // `later` follows, perhaps after a gap. Its thread is not looked at.
    void add(const ThreadTimes& later);
    bool operator==(const ThreadTimes&) const = default;
};

struct AgentStats {
    std::uint64_t cpu_ns = 0, rss_bytes = 0, ring_bytes = 0;
    std::uint64_t samples_read = 0, samples_duplicate = 0, samples_lost = 0;
    std::uint32_t queue_batches = 0;
    std::uint64_t spool_bytes = 0;
    std::uint32_t late_records = 0;
    bool operator==(const AgentStats&) const = default;
};

struct End {
    std::string reason;
    std::int32_t exit_code = 0;
    bool operator==(const End&) const = default;
};

struct Batch {
    RecordingId recording_id{};
    std::uint32_t epoch = 1;
    std::uint64_t seq = 0;
    std::uint64_t first_seq = 0;
    std::uint64_t monotonic_ns = 0;
    std::int64_t realtime_ns = 0;
    std::optional<Recording> recording;

    // Table entries that this batch adds; entry i has id base + i, and base is at least 1. The base of an empty list
    // means nothing: it does not cross the wire (but location_base does when there are stacks) and is decoded as 1.
    Id string_base = 1, module_base = 1, location_base = 1, stack_base = 1, process_base = 1, thread_base = 1,
       event_base = 1;
    std::vector<std::string> strings;
    std::vector<Module> modules;
    std::vector<Location> locations;
    std::vector<StackNode> stacks;
    std::vector<Process> processes;
    std::vector<Thread> threads;
    std::vector<Event> events;

    std::uint32_t bucket_ns = default_bucket_ns;
    std::vector<Row> rows;
    std::vector<Lifecycle> lifecycle;
    std::vector<Loss> losses;
    std::vector<Symbol> symbols;
    std::vector<Notice> notices;
    std::vector<ProcessUnwind> unwinds;
    std::vector<CounterReading> counters;
    std::vector<ThreadTimes> thread_times;
    std::optional<AgentStats> agent;
    std::optional<End> end;
    bool operator==(const Batch&) const = default;
};

// Period of each event id (index 0 unused), the base of the weight column. Both ends keep it per epoch from
// Batch::events.
using EventPeriods = std::vector<std::uint64_t>;

// Adds the periods of `batch.events` at their ids; entries seen before stay as they are.
void learn_periods(const Batch& batch, EventPeriods& periods);

// Protobuf bytes. Brings batch.rows into wire order: sorted by event, thread, cpu, stack, bucket; equal keys added up;
// rows of count 0 left out; weights cut at 2^63 - 1, buckets at 2^32 - 1 before the newest. `periods` must cover every
// event of the rows.
std::string encode(Batch& batch, const EventPeriods& periods);

// invalid: not a batch, or columns of different lengths, or a row of an event that was not announced, or a number or
// list out of range. `periods` holds the epoch's events before this batch and learns from it (not when decode fails);
// the caller clears it at a new epoch (peek_header tells). Enum values that came after this version: a module is a
// file, a loss is unknown, a lifecycle event is left out, a stack mode is fp.
// After missing batches (EventTable::with_gaps), rows can refer to events that those announced: ignore their weights.
enum class EventTable : bool { whole, with_gaps };
Result<Batch> decode(Bytes bytes, EventPeriods& periods, EventTable events = EventTable::whole);

// The few fields that routing needs, without decoding the rest.
struct BatchHeader {
    RecordingId recording_id{};
    std::uint32_t epoch = 0;
    std::uint64_t seq = 0;
    std::uint64_t first_seq = 0;
};
Result<BatchHeader> peek_header(Bytes bytes);

}  // namespace flamewire::wire
