#include "profile/store/counter_history.h"

#include <algorithm>
#include <limits>

namespace flamewire::profile {

namespace {

// Threads come and go, and each has a series for every counter. Above this limit new series are ignored.
constexpr std::size_t max_series = 50'000;

std::uint64_t hash_of(const CounterKey& key) {
    return hash_mix(hash_mix(hash_seed() ^ key.name, (std::uint64_t{key.unit} << 32) | key.part),
                    (std::uint64_t{key.thread} << 32) | key.cpu_plus_1);
}

std::uint64_t add_saturating(std::uint64_t a, std::uint64_t b) {
    const std::uint64_t sum = a + b;
    return sum < a ? std::numeric_limits<std::uint64_t>::max() : sum;
}

// Merges `next`, which follows `point`, usually without a gap.
void join(CounterPoint& point, const CounterPoint& next) {
    point.end_ns = next.end_ns;
    point.value = add_saturating(point.value, next.value);
    point.enabled_ns = add_saturating(point.enabled_ns, next.enabled_ns);
    point.running_ns = add_saturating(point.running_ns, next.running_ns);
    // If any part was counted, the whole was counted.
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
    if (++points_ <= max_points_) return;
    coarsen(false);
    if (points_ > max_points_) coarsen(true);
}

// Merges neighbors if the result is at most as wide as four average points. Any two adjacent points are then wider together,
// so at most half of them (plus one) remain. Coarse points stay as they are until the others are as wide.
void CounterHistory::coarsen(bool over_gaps) {
    for (CounterSeries& series : series_) {
        std::vector<CounterPoint>& points = series.points;
        const std::size_t half = (points.size() + 1) / 2;
        if (half < 2) continue;
        double covered_ns = 0;
        for (std::size_t i = 0; i < half; ++i) covered_ns += static_cast<double>(points[i].end_ns - points[i].start_ns);
        if (over_gaps) covered_ns = static_cast<double>(points[half - 1].end_ns - points[0].start_ns);
        const double widest_ns = 4 * covered_ns / static_cast<double>(half);
        std::size_t kept = 0;
        for (std::size_t i = 1; i < points.size(); ++i) {
            CounterPoint& last = points[kept];
            const auto width_ns = static_cast<double>(points[i].end_ns - last.start_ns);
            if (i < half && width_ns <= widest_ns && (over_gaps || !points[i].after_gap)) {
                join(last, points[i]);
                coarse_until_ns_ = std::max(coarse_until_ns_, last.end_ns);
            } else {
                points[++kept] = points[i];
            }
        }
        points_ -= points.size() - (kept + 1);
        points.resize(kept + 1);
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
