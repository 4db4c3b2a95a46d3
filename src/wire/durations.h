// How long something took, each time it happened: counts by size, which add up over any set of times and threads. Pure.
//
// Buckets are log-linear, as HDR histograms have them: below 16 ns one a nanosecond, above it 16 of equal width a power
// of two. So a length is known to 1/16 of itself, and to half of that when its bucket's middle is taken for it.
#pragma once

#include <cstdint>
#include <vector>

namespace flamewire::wire {

inline constexpr std::uint32_t duration_buckets = 16 * 61;  // up to 2^64 ns

std::uint32_t duration_bucket(std::uint64_t ns);
// The smallest length of a bucket below duration_buckets.
std::uint64_t bucket_begin_ns(std::uint32_t bucket);

struct DurationCount {
    std::uint32_t bucket = 0;
    std::uint64_t count = 0;
    bool operator==(const DurationCount&) const = default;
};

struct Durations {
    std::uint64_t sum_ns = 0, min_ns = 0, max_ns = 0;  // exact; 0 when there are none
    std::vector<DurationCount> counts;                 // by bucket, ascending; none is 0

    void add(std::uint64_t ns);
    void add(const Durations& more);
    [[nodiscard]] std::uint64_t count() const;
    // The length that `per_mille` of all reach at most, nearest rank: its bucket's middle, but between min and max.
    [[nodiscard]] std::uint64_t quantile_ns(std::uint32_t per_mille) const;
    bool operator==(const Durations&) const = default;

private:
    void add(std::uint32_t bucket, std::uint64_t count);
};

}  // namespace flamewire::wire
