#include "symbol/types/interval_map.h"

#include <algorithm>
#include <queue>

namespace flamewire::symbol {

// One sweep over the starts. `active` holds the intervals that began at or before `position`. Intervals that have ended
// are dropped when they reach the top, so each interval is pushed and popped once.
IntervalMap::IntervalMap(std::vector<Interval> intervals) {
    std::erase_if(intervals, [](const Interval& i) { return i.start >= i.end; });
    std::sort(intervals.begin(), intervals.end(),
              [](const Interval& a, const Interval& b) { return a.start < b.start; });
    const auto lower_owner = [](const Interval& a, const Interval& b) { return a.owner < b.owner; };
    std::priority_queue<Interval, std::vector<Interval>, decltype(lower_owner)> active(lower_owner);
    std::uint64_t position = 0;
    std::size_t next = 0;
    while (next < intervals.size() || !active.empty()) {
        while (!active.empty() && active.top().end <= position) active.pop();
        if (active.empty()) {
            if (next == intervals.size()) break;
            if (intervals[next].start > position) append(position, none);
            position = intervals[next].start;
        }
        while (next < intervals.size() && intervals[next].start <= position) active.push(intervals[next++]);
        if (active.top().end <= position) continue;
        append(position, active.top().owner);
        position = active.top().end;
        if (next < intervals.size()) position = std::min(position, intervals[next].start);
    }
    if (!starts_.empty()) append(position, none);
    starts_.shrink_to_fit();
    owners_.shrink_to_fit();
}

void IntervalMap::append(std::uint64_t start, std::uint32_t owner) {
    if (!owners_.empty() && owners_.back() == owner) return;
    starts_.push_back(start);
    owners_.push_back(owner);
}

std::vector<Interval> IntervalMap::covered(std::uint32_t owner) const {
    std::vector<Interval> intervals;
    for (std::size_t i = 0; i + 1 < starts_.size(); ++i)  // the last piece is a gap without end
        if (owners_[i] != none) intervals.push_back({starts_[i], starts_[i + 1], owner});
    return intervals;
}

std::uint32_t IntervalMap::find(std::uint64_t address) const {
    const auto after = std::upper_bound(starts_.begin(), starts_.end(), address);
    return after == starts_.begin() ? none : owners_[static_cast<std::size_t>(after - starts_.begin()) - 1];
}

}  // namespace flamewire::symbol
