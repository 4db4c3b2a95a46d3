#include "profile/counter_history.h"

#include <algorithm>
#include <limits>

namespace flamewire::profile {

namespace {

// Threads come and go, and each has a series of every counter. Above it new ones are left out.
constexpr std::size_t max_series = 50'000;

std::uint64_t hash_of(const CounterKey& key) {
    return hash_mix(hash_mix(hash_seed() ^ key.name, (std::uint64_t{key.unit} << 32) | key.part),
                    (std::uint64_t{key.thread} << 32) | key.cpu_plus_1);
}

std::uint64_t add_saturating(std::uint64_t a, std::uint64_t b) {
    const std::uint64_t sum = a + b;
    return sum < a ? std::numeric_limits<std::uint64_t>::max() : sum;
}

// `next` follows `point` without a gap.
void join(CounterPoint& point, const CounterPoint& next) {
    point.end_ns = next.end_ns;
    point.value = add_saturating(point.value, next.value);
    point.enabled_ns = add_saturating(point.enabled_ns, next.enabled_ns);
    point.running_ns = add_saturating(point.running_ns, next.running_ns);
    // What had its turn in any part of the time was counted.
    if (next.status == wire::CounterStatus::counted) point.status = next.status;
}

}  // namespace

void CounterHistory::add(const CounterKey& key, const CounterPoint& point) {
    if (point.end_ns < point.start_ns) return;
    const std::uint64_t hash = hash_of(key);
    std::uint32_t id = index_.find(hash, [&](std::uint32_t one) { return series_[one - 1].key == key; });
    if (id == 0) {
        if (series_.size() >= max_series) return;
        series_.push_back({key, {}});
        id = narrow32(series_.size());
        index_.insert(hash, id, [&](std::uint32_t one) { return hash_of(series_[one - 1].key); });
    }
    std::vector<CounterPoint>& points = series_[id - 1].points;
    if (!points.empty() && point.start_ns < points.back().end_ns) return;
    append_tight(points, point);
    if (!point.after_gap && points.size() > 1 && points[points.size() - 2].end_ns != point.start_ns)
        points.back().after_gap = true;
    if (++points_ > max_points_) coarsen();
}

void CounterHistory::coarsen() {
    for (CounterSeries& series : series_) {
        std::vector<CounterPoint>& points = series.points;
        const std::size_t half = points.size() / 2;
        std::size_t kept = 0;
        for (std::size_t i = 0; i < points.size(); ++i) {
            points[kept] = points[i];
            if (i < half && i + 1 < points.size() && !points[i + 1].after_gap) {
                join(points[kept], points[++i]);
                coarse_until_ns_ = std::max(coarse_until_ns_, points[kept].end_ns);
            }
            ++kept;
        }
        points_ -= points.size() - kept;
        points.resize(kept);
    }
}

std::size_t CounterHistory::memory_bytes() const {
    std::size_t bytes = index_.memory_bytes() + series_.capacity() * sizeof(CounterSeries);
    for (const CounterSeries& series : series_) bytes += series.points.capacity() * sizeof(CounterPoint);
    return bytes;
}

std::span<const CounterPoint> points_between(const CounterSeries& series, std::uint64_t start_ns,
                                             std::uint64_t end_ns) {
    const auto middle = [](const CounterPoint& point) { return point.start_ns + (point.end_ns - point.start_ns) / 2; };
    const auto first = std::partition_point(series.points.begin(), series.points.end(),
                                            [&](const CounterPoint& point) { return middle(point) < start_ns; });
    const auto last = std::partition_point(first, series.points.end(),
                                           [&](const CounterPoint& point) { return middle(point) < end_ns; });
    return {first, last};
}

}  // namespace flamewire::profile
