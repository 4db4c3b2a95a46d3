// Samples in, batches out: finds stacks, resolves them to locations, folds them into the stack trie and rows, and
// closes batches on request. Owns the tables of the epoch. Single-threaded. The hot path hashes the raw call chain;
// everything else runs once per new chain. A walk over copied stack bytes runs for every sample, and its frames are
// then handled like a chain. Every sample becomes one count of one row, even if nothing is known about it.
//
// It has many functions because it is the only way from the sampler to the parts of this folder: the stack folder, the
// stack policy, the off-CPU tracker and the tables of a batch.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agent/perf/counter_set.h"
#include "agent/perf/record.h"
#include "agent/pipeline/hit_keeper.h"
#include "agent/pipeline/off_cpu_tracker.h"
#include "agent/pipeline/stack_policy.h"
#include "agent/pipeline/user_stack.h"
#include "agent/process/kallsyms.h"
#include "agent/process/process_table.h"
#include "base/result.h"
#include "wire/batch.h"

namespace flamewire::agent {

struct FolderOptions {
    wire::RecordingId recording_id{};
    wire::Recording recording;
    std::vector<wire::Event> events;  // the folder interns names and units from the two lists below
    std::vector<std::string> event_names, event_units;
    HitKeeper::Limits hits;                          // of traced events
    std::uint32_t max_stack = 127;                   // the kernel truncated chains of this length
    std::size_t epoch_bytes = std::size_t{2} << 20;  // tables larger than this start a new epoch
    // Empty: user stacks are the kernel's chains, unchanged.
    std::optional<UserStackOptions> stacks;
};

// How the user stacks of one process are unwound, and with which results.
struct ProcessStacks {
    std::uint32_t pid = 0;
    std::string comm;
    wire::ProcessUnwind counts;  // with the epoch's process id
};

class Folder {
public:
    // Call begin() before any other function.
    explicit Folder(ProcessTable& processes);
    Folder(FolderOptions options, ProcessTable& processes);
    ~Folder();
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    void begin(FolderOptions options);
    // `event` is the index into FolderOptions::events.
    void add_sample(const SampleRecord& sample, std::uint32_t event);
    // Call it right after the process table returned the event, because the comm is read from the table.
    void add_lifecycle(const ProcessTable::LifecycleEvent& event);
    // Adds weight of `event` that is not in any sample of the process. See perf/unsampled.h.
    void add_unsampled(std::uint32_t event, std::uint32_t pid, std::uint64_t weight, std::uint64_t time_ns);
    // `loss.event` is an index into FolderOptions::events plus 1; 0: unknown. A batch has one entry per reason, event
    // and cpu.
    void add_loss(const wire::Loss& loss);
    void add_notice(wire::Notice notice);
    // Adds the counts in the time of `reading`. Its values come from `deltas`, which refer to entries of `counters`.
    void add_counters(wire::CounterReading reading, std::span<const Counter> counters,
                      std::span<const CounterDelta> deltas);
    // Records context switches as times (off_cpu_tracker.h). Samples of the event `events.first` are switches. Those with one
    // of `io_functions` (absolute addresses) in their stack count as I/O waits.
    void start_off_cpu(OffCpuEvents events, std::vector<KernelFunction> io_functions);
    [[nodiscard]] bool tracks_off_cpu() const;
    [[nodiscard]] OffCpuTracker& off_cpu();
    // A wake-up sample. If not `heeded` (while paused), it is counted but ignored.
    void add_waking(const SampleRecord& sample, bool heeded);
    // Converts the finished slices of off_cpu() to rows.
    void emit_off_cpu();
    // Moves thread times up to `time_ns` into the next batch, and time in unknown states as a loss.
    void emit_thread_times(std::uint64_t time_ns);
    // Context-switch and wake-up samples, minus the rows without a sample: off-CPU rows and those of add_unsampled().
    [[nodiscard]] std::int64_t unemitted_switches() const;
    // Stacks whose callers are missing because the copy was full.
    [[nodiscard]] std::uint64_t truncated_copies() const;
    void add_symbols(std::span<const TargetSymbol> symbols);
    // A BPF program was loaded or unloaded, so kernel addresses of later samples may have other names. For an unloaded
    // program that existed before, adds its name for earlier samples.
    void follow_program(const KsymbolRecord& record);

    // Changes events or rate within the recording (`configure`). Existing rows keep their events. From now on, `event`
    // of add_sample is an index into the new list. The next batch contains `recording` and the new events.
    // Only `events`, `event_names`, `event_units` and `hits` of `options` are used.
    void change_events(wire::Recording recording, FolderOptions options);

    // Changes how user stacks are unwound (`configure`). Discards everything cached for the old options.
    void change_stacks(std::optional<UserStackOptions> stacks);
    // Sets how this process is sampled from now on, and why. The process may be unknown yet. Pid 0: see ModeChange.
    void chose_stack_mode(std::uint32_t pid, const StackChoice& choice);
    // A process that should be sampled in another mode because of its previous stacks (UserStackOptions::check_chains).
    struct ModeChange {
        std::uint32_t pid = 0;  // 0: processes that inherit their mode (StackPolicy::inherited)
        StackChoice choice;
    };
    [[nodiscard]] std::vector<ModeChange> wanted_stack_modes() const;
    // Processes with user stacks, those with most samples first; at most `count`.
    [[nodiscard]] std::vector<ProcessStacks> stacks_of_processes(std::size_t count) const;
    // Samples were lost.
    void samples_lost();
    // Call it before the next samples: reads deep stacks of threads in memory. needs_poll(): call it again soon.
    void verify_stacks();
    [[nodiscard]] bool needs_poll() const;
    // See UserStacks.
    [[nodiscard]] std::uint32_t process_of_costly_tables() const;

    // Starts a new epoch after the next close_batch(), because the server cannot resolve references into the current
    // one (Link's new_epoch_wanted). Samples so far can still be sent in the old epoch.
    void begin_epoch();

    // Returns everything since the last call as the next batch (seq starts at 1), with its two times. The caller adds
    // stats and end. Rows can be empty. `last`: include data that would otherwise be sent later.
    wire::Batch close_batch(bool last = false);
    // Event periods of the epoch of the last closed batch, for wire::encode.
    [[nodiscard]] const wire::EventPeriods& periods() const;

    // Distinct kernel addresses of this recording without a sent symbol, relative to _text. At most 65,536.
    [[nodiscard]] std::vector<std::uint64_t> unnamed_kernel_addresses() const;

private:
    struct State;
    ProcessTable& processes_;
    std::unique_ptr<State> state_;
};

}  // namespace flamewire::agent
