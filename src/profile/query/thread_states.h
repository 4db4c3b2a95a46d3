// What threads did with a range of time: on a CPU, waiting for one, asleep, waiting for a device; how long their turns
// were, and why they left. Pure.
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
    StateTimes sums{};               // together: how long is known what it did
    std::vector<StateTimes> slices;  // of equal length, over the range
};

struct ThreadStatesAnswer {
    bool known = false;                      // the session has such times
    std::uint64_t start_ns = 0, end_ns = 0;  // of the range, as far as is known
    std::vector<ThreadStates> threads;       // by time awake, descending
};

// A stretch that is partly in the range, or in several slices, counts in proportion.
ThreadStatesAnswer states_of_threads(const Store& store, const Filter& filter, std::uint64_t session_start_ns,
                                     std::size_t slices);

// Of threads one each, by time spent runnable, descending; stretches that end in the range, whole.
struct Scheduling {
    ThreadId thread = 0;
    wire::ThreadTimes times;  // its thread is not used
};
std::vector<Scheduling> scheduling(const Store& store, const Filter& filter);

}  // namespace flamewire::profile
