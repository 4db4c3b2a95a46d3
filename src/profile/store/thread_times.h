// What threads did with their time, as the target told: stretches of each thread's life with the sums of its states and
// how long its turns on a CPU and before were. Memory is bounded: when there are too many stretches, those of the older
// half of each thread are put together, the narrowest first. Sums and counts stay exact.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "profile/store/model.h"
#include "wire/batch.h"

namespace flamewire::profile {

struct ThreadStretch {
    std::uint64_t start_ns = 0;  // CLOCK_MONOTONIC of the target; in it may be moments of which nobody knows
    wire::ThreadTimes times;     // its thread is not used
};

struct ThreadLife {
    ThreadId thread = 0;
    std::vector<ThreadStretch> stretches;  // in time order
};

class ThreadTimesHistory {
public:
    explicit ThreadTimesHistory(std::size_t max_stretches = 100'000) : max_stretches_(max_stretches) {}

    // Those of a thread come in time order; one that does not is left out.
    void add(ThreadId thread, const wire::ThreadTimes& times);

    // In the order in which they first came.
    [[nodiscard]] std::span<const ThreadLife> lives() const { return lives_; }
    // Until when something is known of any thread; 0: nothing is.
    [[nodiscard]] std::uint64_t end_ns() const { return end_ns_; }
    [[nodiscard]] std::size_t memory_bytes() const;

private:
    void coarsen();

    std::size_t max_stretches_, stretches_ = 0;
    std::uint64_t end_ns_ = 0;
    std::vector<ThreadLife> lives_;
    std::unordered_map<ThreadId, std::size_t> index_;
};

}  // namespace flamewire::profile
