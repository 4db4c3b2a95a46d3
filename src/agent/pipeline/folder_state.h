// The folder's state for one recording; private to its files. folder.cc handles samples, rows and batches,
// folder_stacks.cc converts call chains to stacks, and folder_off_cpu.cc handles times between switches and wakers.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "agent/pipeline/callchain.h"
#include "agent/pipeline/dictionary.h"
#include "agent/pipeline/folder.h"
#include "agent/pipeline/kernel_names.h"
#include "agent/pipeline/located_frames.h"
#include "agent/pipeline/row_table.h"
#include "agent/pipeline/stack_account.h"
#include "process/kernel_symbols.h"
#include "unwind/frame/stop_reason.h"

namespace flamewire::agent {

// Properties of every sample with the same chain.
namespace stack_flag {
inline constexpr std::uint8_t truncated = 1;
inline constexpr std::uint8_t unknown_process = 2;
inline constexpr std::uint8_t io_wait = 4;
inline constexpr std::uint8_t unnamed_jit = 8;
}  // namespace stack_flag

// A chain from the kernel or from a walk, in one generation of an address space. The hash replaces the chain itself:
// two of 64,000 chains have the same hash with a probability of 1 in 10^10.
struct ChainKey {
    std::uint64_t chain_hash = 0, generation = 0;
    bool operator==(const ChainKey&) const = default;
    [[nodiscard]] std::uint64_t hash() const { return mix_in(chain_hash, generation); }
};

inline constexpr std::uint8_t need_unknown = unwind::stack_needs;

struct FoldedStack {
    wire::Id stack = 0;
    std::uint8_t flags = 0;
    unwind::StopReason stop = unwind::StopReason::chain_end;
    bool joined = false;
    bool other_stack = false;  // a walk ended at StopReason::other_stack
    std::uint8_t need = need_unknown;
    std::uint16_t user_frames = 0;  // 0: not a user stack
};

struct Folder::State {
    State(FolderOptions options_in, ProcessTable& processes_in)
        : options(std::move(options_in)), processes(processes_in), dictionary(processes_in) {
        if (options.stacks) stacks = std::make_unique<UserStacks>(processes, *options.stacks);
    }

    void intern_events();
    void begin_epoch();
    wire::Id event_id(std::uint32_t index) const { return index < event_ids.size() ? event_ids[index] : 0; }
    FoldedStack fold(const SampleRecord& sample, ThreadHandle thread, ProcessHandle process);
    FoldedStack fold_chain(const SampleRecord& sample, ThreadHandle thread, ProcessHandle process);
    FoldedStack fold_walk(const SampleRecord& sample, ThreadHandle thread, ProcessHandle process);
    void split(const SampleRecord& sample);
    void append_user_stack();
    std::optional<FoldedStack> full_tables();
    FoldedStack fold_frames(ProcessHandle process, unwind::StopReason stop);
    wire::Id fold_waker(const SampleRecord& sample, ThreadHandle woken);
    const std::string& name_of_external_waker(const SampleRecord& sample);
    void add_waking(const SampleRecord& sample);
    void remember(std::uint64_t chain_hash, ProcessHandle process, const FoldedStack& stack);
    void account(const SampleRecord& sample, ProcessHandle process, const FoldedStack& stack);
    void emit_accounts(wire::Batch& batch, bool last);
    bool locate_frames(ProcessHandle process, std::uint8_t& stack_flags);
    wire::Id locate_kernel(const ChainFrame& frame, std::uint32_t flags);
    LocatedFrames::Located locate_jit(const ResolvedAddress& resolved, std::uint32_t flags);
    void add_row(const wire::Row& row);
    void lose(wire::LossReason reason, std::uint64_t time_ns, std::uint32_t event);
    void add_loss(const wire::Loss& loss);
    std::size_t table_bytes() const;

    FolderOptions options;
    ProcessTable& processes;
    Dictionary dictionary;
    std::vector<wire::Id> event_ids;  // of options.events, in this epoch

    LocatedFrames located;
    IdTable<ChainKey> chains;  // -> index into folded, plus 1
    std::vector<FoldedStack> folded;
    RowTable rows;
    KernelNames kernel_names;
    process::KernelSymbols programs{16'384};

    wire::Batch next;  // the parts without a table: lifecycle, losses, symbols, notices
    std::uint64_t seq = 0;
    std::uint32_t epoch = 1;
    bool recording_due = true;
    bool epoch_due = false;
    bool lifecycle_notice_given = false;
    bool symbols_due = false;  // the new epoch is for a server without the kernel names sent so far
    wire::EventPeriods periods;
    std::uint32_t periods_epoch = 0;

    std::unique_ptr<UserStacks> stacks;
    StackPolicy policy;
    StackAccount accounts;
    std::uint64_t accounts_due_ns = 0;
    OffCpuTracker off_cpu;
    OffCpuEvents off_cpu_events;
    std::vector<KernelFunction> io_functions;
    std::int64_t unemitted_switches = 0;
    std::uint64_t truncated_copies = 0;
    struct ExternalWaker {
        std::uint32_t tid = 0;
        std::uint64_t asked_ns = 0;
        std::string name;
    };
    std::array<ExternalWaker, 64> external_wakers;          // wakers outside the target, by tid
    std::unordered_map<std::uint32_t, StackChoice> chosen;  // by pid

    // Scratch.
    std::vector<ChainFrame> frames;
    std::size_t stored = 0;                 // addresses that the kernel had stored in the chain
    std::vector<std::uint64_t> user_chain;  // of the chain
    UserStack user_stack;
    std::vector<wire::Id> locations;
};

}  // namespace flamewire::agent
