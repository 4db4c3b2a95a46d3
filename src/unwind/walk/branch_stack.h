// User call chains out of the CPU's last branch records in call-stack mode (Intel LBR: branch_sample_type CALL_STACK).
// Source: linux/perf_event.h, struct perf_branch_entry; Intel SDM volume 3, "Last Branch Records".
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace flamewire::unwind {

struct Branch {
    std::uint64_t from = 0, to = 0;  // of a call that has not returned; entry 0 is the newest
};

struct BranchFrame {
    std::uint64_t address = 0;
    bool return_address = false;  // false: the instruction that ran, or the call instruction itself
    bool operator==(const BranchFrame&) const = default;
};

// The interrupted pc, then the call sites, innermost first. `depth` is how many records the CPU has (0: not known):
// as many of them mean that the outer frames were pushed out, and `cut` is set. `chain` (may be empty: without frame
// pointers it is nothing) is the kernel's user chain; where one of its return addresses lies just behind the outermost
// call site known from the records, the chain continues the stack.
std::vector<BranchFrame> frames_of_branches(std::uint64_t pc, std::span<const Branch> branches,
                                            std::span<const std::uint64_t> chain, std::size_t depth, bool& cut);

}  // namespace flamewire::unwind
