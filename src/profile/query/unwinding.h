// How the user stacks of a session are unwound and how complete they are: the agent's counts for each process, listed
// and summed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "profile/store/store.h"

namespace flamewire::profile {

// Results of unwinding user stacks, for one process or all of them. wire::ProcessUnwind explains each number.
struct UnwindCounts {
    std::uint64_t samples = 0, whole = 0, joined = 0, truncated = 0, open_end = 0, stopped = 0;
    std::uint64_t frames = 0, stack_bytes = 0;
    bool operator==(const UnwindCounts&) const = default;
};

struct UnwindProcess {
    std::uint32_t pid = 0;
    std::string comm, mode, why;
    UnwindCounts counts;
    bool operator==(const UnwindProcess&) const = default;
};

// How the user stacks of a session are unwound.
struct Unwinding {
    static constexpr std::size_t most_processes = 200;  // listed: those with most samples

    std::string mode;  // as requested
    std::uint32_t stack_bytes = 0, max_depth = 0;
    UnwindCounts total;
    std::uint64_t process_count = 0;
    std::vector<UnwindProcess> processes;  // by samples, descending; not in the sidecar
    bool operator==(const Unwinding&) const = default;
};

// The name of a stack mode: "fp", "hybrid", "dwarf", "lbr".
std::string_view mode_name(wire::StackMode mode);

// For all processes of a store, and its recording.
Unwinding unwinding_of(const Store& store);

}  // namespace flamewire::profile
