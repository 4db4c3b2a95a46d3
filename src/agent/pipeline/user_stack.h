// Unwinds the user stack of one sample with the method for which its event was opened: the kernel's frame-pointer chain
// unchanged, the chain checked and completed, a walk over the copied stack, both combined, or the CPU's branch records.
// Owns what a walk needs: rules, remembered stacks, the ends of chains.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agent/perf/record.h"
#include "agent/pipeline/other_stacks.h"
#include "agent/pipeline/process_code.h"
#include "agent/pipeline/stack_pages.h"
#include "agent/pipeline/stack_verifier.h"
#include "agent/pipeline/thread_root_frames.h"
#include "agent/process/process_table.h"
#include "unwind/join/stack_stitcher.h"
#include "unwind/walk/branch_stack.h"
#include "unwind/walk/stack_need.h"
#include "unwind/walk/unwinder.h"

namespace flamewire::agent {

struct UserStackOptions {
    // Architecture of the registers in samples: the kernel's, which may be wider than this program's.
    unwind::Arch machine = unwind::Arch::x86_64;
    bool check_chains = false;  // in fp mode, too: remove wrong frames, complete unfinished chains
    // The reason for the mode of a process that was not measured.
    std::string inherited_reason = "as requested";
    std::size_t max_depth = unwind::default_max_depth;
    std::size_t memory_bytes = std::size_t{32} << 20;  // of unwind tables and rules
    std::uint64_t hybrid_bytes = 2048;                 // of a short copy
    // Samples of a thread further apart than this are not consecutive. This is wall-clock time, and threads that wait
    // for a CPU are not sampled, so it is long.
    std::uint64_t gap_ns = 1'000'000'000;
    std::uint8_t address_bits = 48;  // Machine::address_bits
    std::string proc_root = "/proc";
};

struct UserStack {
    std::vector<unwind::Frame> frames;  // innermost first
    unwind::StopReason stop = unwind::StopReason::chain_end;
    // Why the walk by unwind tables ended. chain_end: there was no walk.
    unwind::StopReason walked = unwind::StopReason::chain_end;
    bool joined = false;
    // A later attempt may give a better result, so do not cache this one.
    bool provisional = false;
    unwind::ChainCheck check;  // only of a checked chain
};

class UserStacks {
public:
    UserStacks(ProcessTable& processes, UserStackOptions options);

    // True if the stack of this sample depends only on its call chain.
    [[nodiscard]] static bool by_chain_alone(const SampleRecord& sample);

    // `chain`: the user part of the sample's call chain.
    void find(const SampleRecord& sample, std::span<const std::uint64_t> chain, ThreadHandle thread,
              ProcessHandle process, UserStack& out);
    // What find() needed to unwind this stack. Empty if that cannot be determined.
    std::optional<unwind::StackNeed> need_of(const SampleRecord& sample, ProcessHandle process, const UserStack& stack);

    // Samples were lost, so the next sample of a thread is not consecutive to its last one.
    void samples_lost() { stitcher_.samples_lost(); }
    // Reads deep stacks in memory before the next samples arrive. needs_poll(): call it again soon.
    void verify_stacks();
    [[nodiscard]] bool needs_poll() const { return deep_.needs_poll(); }

    // The first process whose unwind tables exceeded the work limit of a stack; 0: none.
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
    void complete(Context& in, UserStack& out);
    void by_branches(Context& in, UserStack& out);
    void end_chain(Context& in, bool at_root, UserStack& out);

    ProcessTable& processes_;
    UserStackOptions options_;
    ProcessFiles files_;
    unwind::Unwinder unwinder_;
    unwind::StackStitcher stitcher_;
    StackVerifier deep_;
    ThreadRootFrames root_frames_;
    StackPages pages_;
    OtherStacks other_stacks_;
    std::uint32_t costly_pid_ = 0;
    std::vector<unwind::Branch> branches_;  // scratch
};

}  // namespace flamewire::agent
