// Converts a call chain, or a walk over copied stack bytes, to a stack of the stack trie. Stacks that were seen before
// are found by the hash of their chain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "agent/perf/record.h"
#include "agent/pipeline/dictionary.h"
#include "agent/pipeline/folded_stack.h"
#include "agent/pipeline/frame_locator.h"
#include "agent/pipeline/user_stack.h"
#include "agent/process/kallsyms.h"
#include "agent/process/process_table.h"
#include "base/id_table.h"
#include "wire/batch.h"

namespace flamewire::agent {

class StackFolder {
public:
    struct Limits {
        std::uint32_t max_stack = 0;  // the kernel truncated chains of this length
        std::size_t epoch_bytes = 0;  // larger tables start a new epoch
    };
    // All references must outlive this.
    StackFolder(ProcessTable& processes, Dictionary& dictionary, FrameLocator& locator, const Limits& limits)
        : processes_(processes), dictionary_(dictionary), locator_(locator), limits_(limits) {}

    FoldedStack fold(const SampleRecord& sample, ThreadHandle thread, ProcessHandle process);

    // Changes how user stacks are unwound. Discards everything cached for the old options. Empty: user stacks are the
    // kernel's chains, unchanged.
    void change_unwinding(const std::optional<UserStackOptions>& options);
    // Null: see change_unwinding().
    [[nodiscard]] UserStacks* user_stacks() const { return user_stacks_.get(); }
    // Stacks with one of these functions have stack_flag::io_wait.
    void set_io_functions(std::vector<KernelFunction> functions);
    // A chain may now correspond to another stack.
    void forget_chains();

    // Stack ids are no longer valid.
    void begin_epoch();
    // The tables, including the dictionary, are so large that a new epoch should start.
    [[nodiscard]] bool epoch_due() const { return overflowed_ || table_bytes() > limits_.epoch_bytes; }

private:
    // A chain from the kernel or from a walk, in one generation of an address space. The hash replaces the chain
    // itself: two of 64,000 chains have the same hash with a probability of 1 in 10^10.
    struct ChainKey {
        std::uint64_t chain_hash = 0, generation = 0;
        bool operator==(const ChainKey&) const = default;
        [[nodiscard]] std::uint64_t hash(std::uint64_t seed) const { return mix_in(seed ^ chain_hash, generation); }
    };

    FoldedStack fold_chain(const SampleRecord& sample, ThreadHandle thread, ProcessHandle process);
    FoldedStack fold_walk(const SampleRecord& sample, ThreadHandle thread, ProcessHandle process);
    void split(const SampleRecord& sample);
    void append_user_stack();
    void mark_innermost(const SampleRecord& sample);
    FoldedStack fold_frames(ProcessHandle process, unwind::StopReason stop);
    void remember(std::uint64_t chain_hash, ProcessHandle process, const FoldedStack& stack);
    std::optional<FoldedStack> full_tables();
    [[nodiscard]] std::size_t table_bytes() const;

    ProcessTable& processes_;
    Dictionary& dictionary_;
    FrameLocator& locator_;
    const Limits limits_;
    std::unique_ptr<UserStacks> user_stacks_;
    std::vector<KernelFunction> io_functions_;
    IdTable<ChainKey> chains_;  // -> index into folded_, plus 1
    std::vector<FoldedStack> folded_;
    bool overflowed_ = false;  // the tables got far too large within one batch

    // Scratch.
    std::vector<ChainFrame> frames_;
    std::size_t stored_ = 0;                 // addresses that the kernel had stored in the chain
    std::vector<std::uint64_t> user_chain_;  // of the chain
    UserStack user_stack_;
    std::vector<wire::Id> locations_;
};

}  // namespace flamewire::agent
