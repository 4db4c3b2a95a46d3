#include "profile/formats/perf_data/record_order.h"

#include <algorithm>

namespace flamewire::profile::perf_data {

void RecordOrder::put(const Record& record, Block& block) {
    Blocks::hold(block);
    // Records often arrive in order: then there is nothing to sort.
    if (sorted_ == entries_.size() && (entries_.empty() || entries_.back().record.time_ns <= record.time_ns)) ++sorted_;
    entries_.push_back({record, &block});
    newest_ = std::max(newest_, record.time_ns);
}

// The records of each ring are already in order, so there are few runs. Merge them. Equal times keep their order.
void RecordOrder::sort() {
    const auto older = [](const Entry& a, const Entry& b) { return a.record.time_ns < b.record.time_ns; };
    const auto at = [&](std::size_t index) { return entries_.begin() + static_cast<std::ptrdiff_t>(index); };
    std::vector<std::size_t> ends{sorted_};
    while (ends.back() < entries_.size())
        ends.push_back(
            static_cast<std::size_t>(std::is_sorted_until(at(ends.back()), entries_.end(), older) - entries_.begin()));
    while (ends.size() > 1) {
        std::vector<std::size_t> merged;
        std::size_t begin = 0;
        for (std::size_t i = 0; i < ends.size(); i += 2) {
            const std::size_t end = ends[std::min(i + 1, ends.size() - 1)];
            if (i + 1 < ends.size()) std::inplace_merge(at(begin), at(ends[i]), at(end), older);
            merged.push_back(end);
            begin = end;
        }
        ends = std::move(merged);
    }
    sorted_ = entries_.size();
}

std::size_t RecordOrder::ready_at_round() {
    sort();
    const auto later =
        std::ranges::upper_bound(entries_, released_, {}, [](const Entry& entry) { return entry.record.time_ns; });
    released_ = newest_;
    return static_cast<std::size_t>(later - entries_.begin());
}

std::size_t RecordOrder::ready_half() {
    sort();
    return (entries_.size() + 1) / 2;
}

std::size_t RecordOrder::ready_all() {
    sort();
    return entries_.size();
}

void RecordOrder::drop(std::size_t count) {
    entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(count));
    sorted_ -= count;
}

}  // namespace flamewire::profile::perf_data
