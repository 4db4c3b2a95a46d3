// User call chains from the CPU's last branch records in call-stack mode (Intel LBR: branch_sample_type CALL_STACK).
// Source: linux/perf_event.h, struct perf_branch_entry; Intel SDM volume 3, "Last Branch Records".
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/code_address.h"

namespace flamewire::unwind {

struct Branch {
    std::uint64_t from = 0, to = 0;  // of a call that has not returned; entry 0 is the newest
};

// The interrupted pc, then the call instructions, innermost first. `depth` is the CPU's number of records (0: unknown); if all
// are in use, outer frames were lost and `cut` is set. `chain` is the kernel's user chain (may be empty; useless
// without frame pointers). It continues the stack if one of its return addresses follows the outermost recorded call
// site.
std::vector<CodeAddress> frames_of_branches(std::uint64_t pc, std::span<const Branch> branches,
                                            std::span<const std::uint64_t> chain, std::size_t depth, bool& cut);

}  // namespace flamewire::unwind
