// Samples in, batches out: finds stacks, resolves them to locations, folds them into the stack trie and rows, and closes a
// batch when told. Owns the tables of the epoch. One thread. The hot path is a hash of the raw chain; everything else
// happens once a new chain; a walk over stack bytes is made for every sample, and its frames are then treated as a chain
// is. Every sample becomes one count of one row, whatever is known about it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agent/perf/counter_set.h"
#include "agent/perf/record.h"
#include "agent/pipeline/absences.h"
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
    std::vector<wire::Event> events;  // names and units are in the two lists below: the folder interns them
    std::vector<std::string> event_names, event_units;
    std::uint32_t max_stack = 127;                   // chains of this length were cut by the kernel
    std::size_t epoch_bytes = std::size_t{2} << 20;  // tables larger than this start a new epoch
    // Nothing: user stacks are the kernel's chains as they are.
    std::optional<UserStackOptions> stacks;
};

// How the user stacks of one process are found, and what became of them.
struct ProcessStacks {
    std::uint32_t pid = 0;
    std::string comm;
    wire::ProcessUnwind counts;  // its process id is the epoch's
};

class Folder {
public:
    Folder(FolderOptions options, ProcessTable& processes);
    ~Folder();
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    // `event` is the index into FolderOptions::events.
    void add_sample(const SampleRecord& sample, std::uint32_t event);
    // Call it right after the table gave the event: the comm is taken from there.
    void add_lifecycle(const ProcessTable::LifecycleEvent& event);
    // Weight of `event` that is in no sample of the process, for perf/unsampled.h.
    void add_unsampled(std::uint32_t event, std::uint32_t pid, std::uint64_t weight, std::uint64_t time_ns);
    // `loss.event` is an index into FolderOptions::events plus 1; 0: not known. One entry a batch for each reason,
    // event and cpu.
    void add_loss(const wire::Loss& loss);
    void add_notice(wire::Notice notice);
    // What was counted in the times of `reading`, whose values are made from `deltas`, entries of `counters`.
    void add_counters(wire::CounterReading reading, std::span<const Counter> counters,
                      std::span<const CounterDelta> deltas);
    // Context switches as times (absences.h). Samples of the event `events.first` are switches; those whose stack is in
    // one of `io_functions` (absolute addresses) wait for a device.
    void follow_absences(AbsenceEvents events, std::vector<KernelFunction> io_functions);
    [[nodiscard]] bool follows_absences() const;
    [[nodiscard]] Absences& absences();
    // A sample of a wake-up; not heeded while nothing is recorded, but in the books.
    void add_waking(const SampleRecord& sample, bool heeded);
    // What absences() has to tell becomes rows.
    void tell_absences();
    // Moves thread times up to `time_ns` into the next batch, and time in unknown states as a loss.
    void tell_thread_times(std::uint64_t time_ns);
    // Samples of switches that are no row, less the rows that are no sample of a switch.
    [[nodiscard]] std::int64_t switches_not_told() const;
    // Stacks whose callers are missing because the copy was full.
    [[nodiscard]] std::uint64_t truncated_copies() const;
    void add_symbols(std::span<const TargetSymbol> symbols);
    // Kernel addresses of later samples may have other names; of a program that ends, those of earlier ones are told.
    void follow_program(const KsymbolRecord& record);

    // Other events or another rate inside the same recording (`configure`): rows folded so far keep their events, and
    // `event` of add_sample counts in the new list from now on. The next batch carries `recording` and the new events.
    void change_events(wire::Recording recording, std::vector<wire::Event> events, std::vector<std::string> event_names,
                       std::vector<std::string> event_units);

    // Another way to find user stacks (`configure`): what was remembered for the old one is gone.
    void change_stacks(std::optional<UserStackOptions> stacks);
    // How this process is sampled from now on, and why. It may not have been seen yet. Pid 0: as in wanted_stack_modes().
    void chose_stack_mode(std::uint32_t pid, const StackChoice& choice);
    // Processes that should be sampled in another mode, by what their stacks needed (UserStackOptions::check_chains).
    struct ModeChange {
        std::uint32_t pid = 0;  // 0: processes that others start (StackPolicy::inherited)
        StackChoice choice;
    };
    [[nodiscard]] std::vector<ModeChange> wanted_stack_modes() const;
    // Of the processes with user stacks, those with most samples first, at most `count`.
    [[nodiscard]] std::vector<ProcessStacks> stacks_of_processes(std::size_t count) const;
    // Samples were lost.
    void samples_lost();
    // Samples are about to come: what threads have on their stacks is looked at for them. wants_looks(): soon again.
    void look_at_stacks();
    [[nodiscard]] bool wants_looks() const;
    // As UserStacks has it.
    [[nodiscard]] std::uint32_t process_of_costly_tables() const;

    // The batch after next close_batch() begins a new epoch: the server cannot follow references into the current one
    // (Link's new_epoch_wanted). What was folded so far may still go out in the old epoch.
    void begin_epoch();

    // Takes what was folded since the last call as the next batch (seq counts from 1), with its time pair; stats and
    // end are the caller's. Rows are empty when nothing happened. `last`: what else would be told later is in it, too.
    wire::Batch close_batch(bool last = false);
    // Periods of the events of the epoch of the batch closed last, for wire::encode.
    [[nodiscard]] const wire::EventPeriods& periods() const;

    // Distinct kernel addresses of this recording, relative to _text, that have no symbol sent yet; 65,536 at most.
    [[nodiscard]] std::vector<std::uint64_t> unnamed_kernel_addresses() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace flamewire::agent
