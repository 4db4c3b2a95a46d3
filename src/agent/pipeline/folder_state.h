// The folder's state for one recording; private to folder.cc.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "agent/pipeline/dictionary.h"
#include "agent/pipeline/folded_stack.h"
#include "agent/pipeline/folder.h"
#include "agent/pipeline/frame_locator.h"
#include "agent/pipeline/hit_keeper.h"
#include "agent/pipeline/stack_account.h"
#include "agent/pipeline/stack_folder.h"
#include "agent/pipeline/waker_stacks.h"
#include "recording/row_table.h"

namespace flamewire::agent {

struct Folder::State {
    State(FolderOptions options_in, ProcessTable& processes_in)
        : options(std::move(options_in)),
          processes(processes_in),
          dictionary(processes_in),
          stacks(processes, dictionary, locator, {options.max_stack, options.epoch_bytes}) {
        stacks.change_unwinding(options.stacks);
    }

    void intern_events();
    void begin_epoch();
    wire::Id event_id(std::uint32_t index) const { return index < event_ids.size() ? event_ids[index] : 0; }
    void add_waking(const SampleRecord& sample);
    void account(const SampleRecord& sample, ProcessHandle process, const FoldedStack& stack);
    void emit_accounts(wire::Batch& batch, bool last);
    void lose(wire::LossReason reason, std::uint64_t time_ns, std::uint32_t event);
    void add_loss(const wire::Loss& loss);

    FolderOptions options;
    ProcessTable& processes;
    Dictionary dictionary;
    std::vector<wire::Id> event_ids;  // of options.events, in this epoch

    FrameLocator locator{processes, dictionary};
    StackFolder stacks;
    WakerStacks wakers{processes, dictionary, stacks};
    recording::RowTable rows;
    HitKeeper hits{locator};

    wire::Batch next;  // the parts without a table: lifecycle, losses, symbols, notices
    std::uint64_t seq = 0;
    std::uint32_t epoch = 1;
    bool recording_due = true;
    bool epoch_due = false;
    bool lifecycle_notice_given = false;
    bool symbols_due = false;  // the new epoch is for a server without the kernel names sent so far
    wire::EventPeriods periods;
    std::uint32_t periods_epoch = 0;

    StackPolicy policy;
    StackAccount accounts;
    std::uint64_t accounts_due_ns = 0;
    OffCpuTracker off_cpu;
    OffCpuEvents off_cpu_events;
    std::int64_t unemitted_switches = 0;
    std::uint64_t truncated_copies = 0;
    std::unordered_map<std::uint32_t, StackChoice> chosen;  // by pid
};

}  // namespace flamewire::agent
