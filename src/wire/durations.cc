#include "wire/durations.h"

#include <algorithm>
#include <bit>

#include "wire/batch.h"

namespace flamewire::wire {

std::uint32_t duration_bucket(std::uint64_t ns) {
    if (ns < 16) return static_cast<std::uint32_t>(ns);
    const auto power = static_cast<std::uint32_t>(std::bit_width(ns)) - 5;  // ns >> power is 16 to 31
    return power * 16 + static_cast<std::uint32_t>(ns >> power);
}

std::uint64_t bucket_begin_ns(std::uint32_t bucket) {
    if (bucket < 32) return bucket;
    return std::uint64_t{16 + bucket % 16} << (bucket / 16 - 1);
}

void Durations::add(std::uint32_t bucket, std::uint64_t count) {
    auto place = std::lower_bound(counts.begin(), counts.end(), bucket,
                                  [](const DurationCount& one, std::uint32_t wanted) { return one.bucket < wanted; });
    if (place == counts.end() || place->bucket != bucket) place = counts.insert(place, {bucket, 0});
    place->count += count;
}

void Durations::add(std::uint64_t ns) {
    min_ns = counts.empty() ? ns : std::min(min_ns, ns);
    max_ns = std::max(max_ns, ns);
    sum_ns += ns;
    add(duration_bucket(ns), 1);
}

void Durations::add(const Durations& more) {
    if (more.counts.empty()) return;
    min_ns = counts.empty() ? more.min_ns : std::min(min_ns, more.min_ns);
    max_ns = std::max(max_ns, more.max_ns);
    sum_ns += more.sum_ns;
    for (const DurationCount& one : more.counts) add(one.bucket, one.count);
}

std::uint64_t Durations::count() const {
    std::uint64_t sum = 0;
    for (const DurationCount& one : counts) sum += one.count;
    return sum;
}

std::uint64_t Durations::quantile_ns(std::uint32_t per_mille) const {
    const std::uint64_t all = count();
    const std::uint64_t rank = all / 1000 * per_mille + (all % 1000 * per_mille + 999) / 1000;
    std::uint64_t before = 0;
    for (const DurationCount& one : counts) {
        before += one.count;
        if (before < rank) continue;
        const std::uint64_t begin = bucket_begin_ns(one.bucket);
        const std::uint64_t width = one.bucket < 32 ? 1 : std::uint64_t{1} << (one.bucket / 16 - 1);
        return std::clamp(begin + (width - 1) / 2, min_ns, max_ns);
    }
    return max_ns;
}

void ThreadTimes::add(const ThreadTimes& later) {
    end_ns = later.end_ns;
    for (std::size_t state = 0; state < thread_states; ++state) state_ns[state] += later.state_ns[state];
    preempted += later.preempted;
    slept += later.slept;
    io_waits += later.io_waits;
    slices.add(later.slices);
    queued.add(later.queued);
}

}  // namespace flamewire::wire
