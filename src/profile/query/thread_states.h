// What threads did in a range of time: running, runnable, blocked or waiting for I/O; how long each period on a CPU
// was, and why it ended. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "profile/query/query.h"
#include "profile/store/thread_times.h"

namespace flamewire::profile {

inline constexpr std::array<std::string_view, wire::thread_states> thread_state_names{"run", "runnable", "blocked",
                                                                                      "io_wait"};

using StateTimes = std::array<double, wire::thread_states>;  // ns

struct ThreadStates {
    ThreadId thread = 0;
    StateTimes sums{};               // their sum is the time for which the state is known
    std::vector<StateTimes> slices;  // of equal length, covering the range
};

struct ThreadStatesAnswer {
    bool known = false;                      // the session has thread times
    std::uint64_t start_ns = 0, end_ns = 0;  // the known part of the range
    std::vector<ThreadStates> threads;       // by time running or runnable, descending
};

// A stretch that is partly in the range, or in several slices, counts in proportion.
ThreadStatesAnswer states_of_threads(const Store& store, const Filter& filter, std::uint64_t session_start_ns,
                                     std::size_t slices);

// One entry per thread, by descending runnable time. Counts stretches that end in the range, as a whole.
struct Scheduling {
    ThreadId thread = 0;
    wire::ThreadTimes times;  // its `thread` is not used
};
std::vector<Scheduling> scheduling(const Store& store, const Filter& filter);

}  // namespace flamewire::profile
