// What threads did with their time, as the target reported it: stretches of each thread's life, with the time in each
// state and the lengths of its periods on a CPU and of the waits before them. Memory is bounded: if there are too many
// stretches, those in the older half of each thread are merged, the narrowest first. Sums and counts stay exact.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "profile/store/model.h"
#include "wire/batch.h"

namespace flamewire::profile {

struct ThreadStretch {
    std::uint64_t start_ns = 0;  // CLOCK_MONOTONIC of the target; parts of it may be unknown
    wire::ThreadTimes times;     // its `thread` is not used
};

struct ThreadLife {
    ThreadId thread = 0;
    std::vector<ThreadStretch> stretches;  // in time order
};

class ThreadTimesHistory {
public:
    explicit ThreadTimesHistory(std::size_t max_stretches = 100'000) : max_stretches_(max_stretches) {}

    // Stretches of a thread must come in time order; others are ignored.
    void add(ThreadId thread, const wire::ThreadTimes& times);

    // In order of first appearance.
    [[nodiscard]] std::span<const ThreadLife> lives() const { return lives_; }
    // The end of the known time of any thread; 0: nothing is known.
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
