// A histogram of durations. Histograms of different times and threads can be added. Pure.
//
// Buckets are log-linear, as in HDR histograms: one per nanosecond below 16 ns, above that 16 of equal width per power
// of two. So a bucket is at most 1/16 as wide as its durations, and its middle is off by at most half of that.
#pragma once

#include <cstdint>
#include <vector>

namespace flamewire::wire {

inline constexpr std::uint32_t duration_buckets = 16 * 61;  // up to 2^64 ns

std::uint32_t duration_bucket(std::uint64_t ns);
// The smallest duration of a bucket. `bucket` must be below duration_buckets.
std::uint64_t bucket_begin_ns(std::uint32_t bucket);

struct DurationCount {
    std::uint32_t bucket = 0;
    std::uint64_t count = 0;
    bool operator==(const DurationCount&) const = default;
};

struct Durations {
    std::uint64_t sum_ns = 0, min_ns = 0, max_ns = 0;  // exact; 0 if empty
    std::vector<DurationCount> counts;                 // by bucket, ascending; no count is 0

    void add(std::uint64_t ns);
    void add(const Durations& more);
    [[nodiscard]] std::uint64_t count() const;
    // The nearest-rank quantile: the middle of its bucket, clamped to min and max.
    [[nodiscard]] std::uint64_t quantile_ns(std::uint32_t per_mille) const;
    bool operator==(const Durations&) const = default;

private:
    void add(std::uint32_t bucket, std::uint64_t count);
};

}  // namespace flamewire::wire
