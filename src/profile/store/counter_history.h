// What was counted, over time: for each counter of the whole target, of a thread or of a CPU the intervals between two
// readings. Memory is bounded: when there are too many intervals, those of the older half of each series are put
// together, the finest first, until its steps are about equal. So a day has its last hours in full and all before in
// even steps, never its morning in one. Sums stay exact.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "profile/store/id_index.h"
#include "profile/store/model.h"
#include "wire/batch.h"

namespace flamewire::profile {

struct CounterPoint {
    std::uint64_t start_ns = 0, end_ns = 0;  // CLOCK_MONOTONIC of the target
    std::uint64_t value = 0, enabled_ns = 0, running_ns = 0;
    wire::CounterStatus status = wire::CounterStatus::counted;
    bool after_gap = false;  // nothing was counted right before
};

// What tells one series from another.
struct CounterKey {
    StringId name = 0, unit = 0, part = 0;
    ThreadId thread = 0;           // 0: the whole target
    std::uint32_t cpu_plus_1 = 0;  // 0: all CPUs
    bool operator==(const CounterKey&) const = default;
};

struct CounterSeries {
    CounterKey key;
    std::vector<CounterPoint> points;  // in time order
};

class CounterHistory {
public:
    explicit CounterHistory(std::size_t max_points = 200'000) : max_points_(max_points) {}

    // Points of a series come in time order; one that does not is left out.
    void add(const CounterKey& key, const CounterPoint& point);

    // In the order in which they first came.
    [[nodiscard]] std::span<const CounterSeries> series() const { return series_; }
    [[nodiscard]] std::size_t memory_bytes() const;
    // Before this time intervals have been put together; 0: nowhere.
    [[nodiscard]] std::uint64_t coarse_until_ns() const { return coarse_until_ns_; }

private:
    void coarsen(bool over_gaps);

    std::size_t max_points_, points_ = 0;
    std::uint64_t coarse_until_ns_ = 0;
    std::vector<CounterSeries> series_;
    IdIndex index_;
};

// The points of a series that lie in a range, by their middles: a range has what was counted mostly in it.
std::span<const CounterPoint> points_between(const CounterSeries& series, std::uint64_t start_ns, std::uint64_t end_ns);

}  // namespace flamewire::profile
