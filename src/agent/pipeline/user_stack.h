// The user stack of one sample, by the way that its event was opened for: the kernel's frame-pointer chain as it is, the
// chain checked and completed, a walk over the copied stack, both together, or the CPU's branch records. Owns what a
// walk needs: rules, remembered stacks, the ends of chains.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agent/perf/record.h"
#include "agent/pipeline/deep_stacks.h"
#include "agent/pipeline/process_code.h"
#include "agent/pipeline/stack_pages.h"
#include "agent/pipeline/stack_tails.h"
#include "agent/process/process_table.h"
#include "unwind/join/joiner.h"
#include "unwind/walk/branch_stack.h"
#include "unwind/walk/stack_need.h"
#include "unwind/walk/unwinder.h"

namespace flamewire::agent {

struct UserStackOptions {
    // Whose registers samples carry: the kernel's architecture, which may be wider than this program's.
    unwind::Arch machine = unwind::Arch::x86_64;
    bool check_chains = false;  // also by frame pointers alone: cut what is wrong, complete what is open
    // Why a process of which nothing was measured is sampled as it is.
    std::string inherited_reason = "as asked for";
    std::size_t max_depth = unwind::default_max_depth;
    std::size_t memory_bytes = std::size_t{32} << 20;  // of unwind tables and rules
    std::uint64_t hybrid_bytes = 2048;                 // of a short copy
    // Samples of a thread further apart than this do not follow each other. By the clock on the wall, though threads that
    // wait for a CPU are not sampled: so it is long.
    std::uint64_t gap_ns = 1'000'000'000;
    std::uint8_t address_bits = 48;  // Machine::address_bits
    std::string proc_root = "/proc";
};

struct UserStack {
    std::vector<unwind::Frame> frames;  // innermost first
    unwind::StopReason stop = unwind::StopReason::chain_end;
    // Why the tables led no further; chain_end when they were not asked.
    unwind::StopReason walked = unwind::StopReason::chain_end;
    bool joined = false;
    // The answer may be better next time: do not remember it.
    bool provisional = false;
    unwind::ChainCheck check;  // of a chain that was checked
};

class UserStacks {
public:
    UserStacks(ProcessTable& processes, UserStackOptions options);

    // True when the stack of this sample is a function of its call chain alone.
    [[nodiscard]] static bool by_chain_alone(const SampleRecord& sample);

    // `chain`: user part of the sample's call chain.
    void find(const SampleRecord& sample, std::span<const std::uint64_t> chain, ThreadHandle thread,
              ProcessHandle process, UserStack& out);
    // What it took to find a stack that find() gave; nothing when that cannot be told.
    std::optional<unwind::StackNeed> judge(const SampleRecord& sample, ProcessHandle process, const UserStack& stack);

    // The next sample of every thread does not follow its last one.
    void samples_lost() { joiner_.samples_lost(); }
    // What deep stacks hold in memory, for the samples that come next; and whether to look again soon.
    void look_at_stacks();
    [[nodiscard]] bool wants_looks() const { return deep_.wants_looks(); }

    // The first process whose tables took more work than a stack may; 0: none has.
    [[nodiscard]] std::uint32_t process_of_costly_tables() const { return costly_pid_; }

    [[nodiscard]] const unwind::Unwinder::Counts& unwinder_counts() const { return unwinder_.counts(); }

private:
    struct Context;  // of one call of find()
    Context context_of(const SampleRecord& sample, ProcessHandle process);

    void by_chain(Context& in, UserStack& out);
    void by_walk(Context& in, UserStack& out);
    unwind::StopReason walk(Context& in, UserStack& out);
    void over_signal(Context& in, UserStack& out);
    void by_short_walk(Context& in, UserStack& out);
    void splice_chain(Context& in, UserStack& out);
    void by_branches(Context& in, UserStack& out);
    void end_chain(Context& in, bool at_root, UserStack& out);

    ProcessTable& processes_;
    UserStackOptions options_;
    ProcessFiles files_;
    unwind::Unwinder unwinder_;
    unwind::Joiner joiner_;
    DeepStacks deep_;
    StackTails tails_;
    StackPages pages_;
    std::uint32_t costly_pid_ = 0;
    std::vector<unwind::Branch> branches_;  // scratch
};

}  // namespace flamewire::agent
