// Counter values over time: for each counter of the whole target, of a thread or of a CPU, the intervals between two
// readings. Memory is bounded: if there are too many intervals, those in the older half of each series are merged, the
// finest first, until the series has about equal steps. A day of data thus keeps the last hours in full and everything
// before in even steps. Sums stay exact.
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
    bool after_gap = false;  // nothing was counted directly before
};

// Identifies a series.
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

    // Points of a series must come in time order; others are ignored.
    void add(const CounterKey& key, const CounterPoint& point);

    // In order of first appearance.
    [[nodiscard]] std::span<const CounterSeries> series() const { return series_; }
    [[nodiscard]] std::size_t memory_bytes() const;
    // Intervals before this time may have been merged; 0: none were.
    [[nodiscard]] std::uint64_t coarse_until_ns() const { return coarse_until_ns_; }

private:
    void coarsen(bool over_gaps);

    std::size_t max_points_, points_ = 0;
    std::uint64_t coarse_until_ns_ = 0;
    std::vector<CounterSeries> series_;
    IdIndex index_;
};

// The points of a series whose midpoint lies in a range, so that a point belongs to the range that contains most of it.
std::span<const CounterPoint> points_between(const CounterSeries& series, std::uint64_t start_ns, std::uint64_t end_ns);

}  // namespace flamewire::profile
