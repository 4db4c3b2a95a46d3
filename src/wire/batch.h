// One batch as values, and its protobuf form. docs/wire.proto is the schema and describes every field. This header
// describes only what differs in C++: columns are rows here, and deltas are absolute values.
// Pure: bytes in, values out. The agent encodes and the server decodes. Nothing here resolves references, but decode
// guarantees that all columns had the same length and that numbers fit their types.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/code_address.h"
#include "base/result.h"
#include "wire/durations.h"

namespace flamewire::wire {

inline constexpr std::uint32_t default_bucket_ns = 10'000'000;

// Limits of one batch. decode rejects more, so that a small input never expands to gigabytes. Encoders must stay within
// them. max_batch_rows applies separately to rows, locations and stack nodes, max_batch_entries to each other list, and
// max_events to an epoch.
inline constexpr std::size_t max_batch_rows = std::size_t{1} << 20;
inline constexpr std::size_t max_batch_entries = std::size_t{1} << 18;
inline constexpr std::size_t max_events = 4096;
inline constexpr std::size_t max_event_fields = 64, max_print_format = 16'384;
// Hits of all events of a batch, and the bytes of their texts.
inline constexpr std::size_t max_batch_hits = 65'536, max_hit_text_bytes = std::size_t{4} << 20;

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
    std::string unwind;             // as requested: "auto", "fp", "dwarf", "lbr"
    std::uint32_t stack_bytes = 0;  // copied with a sample in dwarf mode
    std::uint32_t max_depth = 0;    // most frames of a stack
    bool kernel = false;
    std::uint32_t interval_ms = 0;
    std::uint64_t start_ns = 0;
    std::uint32_t page_size = 0;
    std::uint32_t cpus = 0;
    std::uint64_t changed_ns = 0;  // when a user last changed what is recorded; 0: never
    std::uint64_t gap_ns = 0;      // length of the sampling gap that starts at changed_ns
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
inline constexpr std::uint32_t return_address = 1;  // or another address after the instruction in question
inline constexpr std::uint32_t kernel_mode = 2;
inline constexpr std::uint32_t joined = 4;   // copied from the thread's previous stacks, not read with this sample
inline constexpr std::uint32_t inlined = 8;  // of a name: inlined into its caller, according to an imported file
}  // namespace location_flag

struct Location {
    Id module = 0;
    std::uint64_t address = 0;
    std::uint32_t flags = 0;
    Id name = 0, file = 0;
    std::uint32_t line = 0;
    [[nodiscard]] CodeAddress code_address() const { return {address, (flags & location_flag::return_address) != 0}; }
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

// How a value of a traced event is shown.
enum class FieldKind : std::uint8_t {
    unsigned_number,
    signed_number,  // in two's complement
    address,        // or another number that is usually printed as hexadecimal
    text,           // the value is an index into Hits::texts
    bytes,          // the same
};

struct EventField {
    std::string name;
    FieldKind kind = FieldKind::unsigned_number;
    bool operator==(const EventField&) const = default;
};

struct Event {
    Id name = 0, unit = 0;
    std::uint32_t frequency_hz = 0;
    std::uint64_t period = 0;
    bool traced = false;  // each sample is also in Hits
    // '= {}' lets a caller name only the members that it sets. NOLINTBEGIN(readability-redundant-member-init)
    std::vector<EventField> fields = {};  // at most max_event_fields
    std::string print_format = {};        // how the kernel prints the fields: "print fmt" of a tracepoint's format file
    // NOLINTEND(readability-redundant-member-init)
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

// One sample of a traced event. It is also counted in a row.
struct Hit {
    std::uint64_t time_ns = 0;
    Id thread = 0;
    std::uint32_t cpu = 0;
    Id stack = 0;
    std::uint64_t weight = 0;
    bool operator==(const Hit&) const = default;
};

// What is at an address that is a value of hits.
struct HitAddress {
    std::uint64_t value = 0;
    Id location = 0;
    bool operator==(const HitAddress&) const = default;
};

// Hits of one event. Their values are in `values`, `fields` for each hit.
struct Hits {
    Id event = 0;
    std::uint32_t fields = 0;  // as many as Event::fields
    std::vector<Hit> hits;
    std::vector<std::uint64_t> values;
    std::vector<std::string> texts;     // of the values of this event in this batch
    std::vector<HitAddress> addresses;  // by value, without repetitions
    std::uint64_t dropped = 0;          // further hits that did not fit; their rows did
    bool operator==(const Hits&) const = default;
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

// How the user stacks of a process are unwound.
enum class StackMode : std::uint8_t {
    fp,      // the kernel's frame-pointer chain
    hybrid,  // the chain, but the innermost frames from unwind tables, registers and a small stack copy
    dwarf,   // unwind tables, registers and a large stack copy
    lbr,     // the CPU's branch records
};

// How unwinding the user stacks of one process ended, since the start of the recording. A newer entry of a process
// replaces older ones.
struct ProcessUnwind {
    Id process = 0;
    StackMode mode = StackMode::fp;
    std::string why;                // one sentence: what was measured
    std::uint64_t samples = 0;      // with a user stack
    std::uint64_t whole = 0;        // of these: reached the root
    std::uint64_t joined = 0;       // of these: reached the root, completed from the thread's previous stacks
    std::uint64_t truncated = 0;    // of these: deeper than the copy or the frame limit
    std::uint64_t open_end = 0;     // of these: a frame-pointer chain that ended, perhaps before the root
    std::uint64_t stopped = 0;      // of these: ended for any other reason
    std::uint64_t frames = 0;       // of all samples together
    std::uint64_t stack_bytes = 0;  // copied by the kernel
    bool operator==(const ProcessUnwind&) const = default;
};

// What is known about a counter in one interval.
enum class CounterStatus : std::uint8_t {
    counted,       // value, enabled_ns and running_ns are valid
    not_counted,   // opened, but never scheduled on the PMU in this interval: the value is unknown
    unsupported,   // this kernel, CPU or virtual machine does not have the event
    never_counts,  // it opens, but stays at 0 when it should count: treat as unsupported
    forbidden,     // the kernel denies it to the agent
};

// One counter over one interval. The interval values of a total counter add up to its total, and so do the values of
// its parts.
struct CounterValue {
    Id name = 0;                   // string: as requested, "cycles"
    Id unit = 0;                   // string: "cycles", "ns", "faults", "events", …
    Id part = 0;                   // string: the PMU of a hybrid CPU that counted it ("cpu_atom"); 0: no parts
    Id thread = 0;                 // 0: the whole target
    std::uint32_t cpu_plus_1 = 0;  // 0: all CPUs
    CounterStatus status = CounterStatus::counted;
    std::uint64_t value = 0;       // as counted, not scaled
    std::uint64_t enabled_ns = 0;  // CPU time in which it should have counted
    std::uint64_t running_ns = 0;  // CPU time in which it was scheduled on the PMU
    bool operator==(const CounterValue&) const = default;
};

// One reading of all counters.
struct CounterReading {
    std::uint64_t start_ns = 0, end_ns = 0;  // CLOCK_MONOTONIC; starts where the scope's previous reading ended
    bool after_gap = false;                  // exception: nothing was counted directly before start_ns
    std::vector<CounterValue> values;
    bool operator==(const CounterReading&) const = default;
};

// State of a thread over a time span.
enum class ThreadState : std::uint8_t {
    run,       // on a CPU
    runnable,  // waited for a CPU
    blocked,   // asleep, not in I/O wait
    io_wait,   // asleep in a wait that the kernel counts as I/O wait
};
inline constexpr std::size_t thread_states = 4;

// The time span ends at end_ns and is as long as the sum of its states. The spans of a thread are in order. In the gaps
// between them the state is unknown.
struct ThreadTimes {
    Id thread = 0;
    std::uint64_t end_ns = 0;  // CLOCK_MONOTONIC
    std::array<std::uint64_t, thread_states> state_ns{};
    // How often it left a CPU: while still runnable, to sleep, to sleep in I/O wait.
    std::uint64_t preempted = 0, slept = 0, io_waits = 0;
    Durations slices;  // time on a CPU from switch-in to switch-out; counted if it ended in the span
    Durations queued;  // time runnable before it ran; counted if it ended in the span

    [[nodiscard]] std::uint64_t length_ns() const { return state_ns[0] + state_ns[1] + state_ns[2] + state_ns[3]; }
    // `later` must follow this span, perhaps after a gap. Ignores its thread.
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

    // Table entries that this batch adds. Entry i has id base + i, and base is at least 1. The base of an empty list is
    // meaningless: it is not sent and is decoded as 1. Exception: location_base is sent if there are stacks.
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
    std::vector<Hits> hits;
    std::optional<AgentStats> agent;
    std::optional<End> end;
    bool operator==(const Batch&) const = default;
};

// Period of each event id (index 0 is unused), the base of the weight column. Agent and server each build it per epoch
// from Batch::events.
using EventPeriods = std::vector<std::uint64_t>;

// Adds the periods of `batch.events` at their ids. Does not change existing entries.
void learn_periods(const Batch& batch, EventPeriods& periods);

// Returns protobuf bytes. Changes batch.rows to wire order: sorts by event, thread, cpu, stack and bucket, merges equal
// keys, and drops rows of count 0. Clamps weights to 2^63 - 1 and buckets to at most 2^32 - 1 before the newest.
// `periods` must cover every event of the rows.
std::string encode(Batch& batch, const EventPeriods& periods);

// invalid: not a batch, columns of different lengths, a row of an event that was not announced, or a number or list out
// of range. `periods` holds the events of the epoch before this batch. decode adds the batch's events, unless it fails.
// The caller clears `periods` at a new epoch (see peek_header). Unknown enum values of later versions: a module becomes
// file, a loss unknown, a stack mode fp, a counter status not_counted; a lifecycle event is left out.
// After missing batches (EventTable::with_gaps), rows can refer to events that those announced: ignore their weights.
enum class EventTable : bool { whole, with_gaps };
Result<Batch> decode(Bytes bytes, EventPeriods& periods, EventTable events = EventTable::whole);

// The fields that routing needs, read without decoding the rest.
struct BatchHeader {
    RecordingId recording_id{};
    std::uint32_t epoch = 0;
    std::uint64_t seq = 0;
    std::uint64_t first_seq = 0;
};
Result<BatchHeader> peek_header(Bytes bytes);

}  // namespace flamewire::wire
