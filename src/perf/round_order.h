// Sorts the records of a perf.data file by time. perf drains the ring of each CPU in turn and ends each such round with
// a record (PERF_RECORD_FINISHED_ROUND). Records after it are not older than the newest record of the round before.
//
// The agent's merge (agent/perf/merge.h) is another problem: it has the rings themselves, each in order, and a clock.
// So it compares only the oldest record of each ring, and no record leaves its ring before its turn. A file does not
// say from which ring a record is, so all records of two rounds must wait here.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace flamewire::perf {

// `Item` has a time_ns. Equal times keep their order.
template <class Item>
class RoundOrder {
public:
    void put(Item item) {
        // Records often arrive in order: then there is nothing to sort.
        if (sorted_ == items_.size() && (items_.empty() || !older(item, items_.back()))) ++sorted_;
        newest_ = std::max(newest_, item.time_ns);
        items_.push_back(std::move(item));
    }
    // The number of items at the front that are in order and that no later item precedes, at the end of a round.
    std::size_t ready_at_round() {
        sort();
        const auto later = std::ranges::upper_bound(items_, std::exchange(released_, newest_), {}, &Item::time_ns);
        return static_cast<std::size_t>(later - items_.begin());
    }
    // Half of the items, for when too many wait. A later item can be older than these and is then out of order.
    std::size_t ready_half() {
        sort();
        return (items_.size() + 1) / 2;
    }
    // All items, at the end of the file.
    std::size_t ready_all() {
        sort();
        return items_.size();
    }
    [[nodiscard]] const Item& operator[](std::size_t index) const { return items_[index]; }
    // Removes items at the front.
    void drop(std::size_t count) {
        items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(count));
        sorted_ -= count;
    }
    [[nodiscard]] std::size_t size() const { return items_.size(); }

private:
    static bool older(const Item& a, const Item& b) { return a.time_ns < b.time_ns; }

    // The records of each ring are already in order, so there are few runs. Merge them.
    void sort() {
        const auto at = [&](std::size_t index) { return items_.begin() + static_cast<std::ptrdiff_t>(index); };
        std::vector<std::size_t> ends{sorted_};
        while (ends.back() < items_.size())
            ends.push_back(
                static_cast<std::size_t>(std::is_sorted_until(at(ends.back()), items_.end(), older) - items_.begin()));
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
        sorted_ = items_.size();
    }

    std::vector<Item> items_;
    std::size_t sorted_ = 0;                   // number of items at the front that are in order
    std::uint64_t newest_ = 0, released_ = 0;  // times: the newest item; the limit for the next round's end
};

}  // namespace flamewire::perf
