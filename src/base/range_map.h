// Disjoint address ranges, each with a value. A new range replaces the parts of older ranges that it overlaps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

namespace flamewire {

template <class Value>
class RangeMap {
public:
    struct Range {
        std::uint64_t end = 0;
        Value value;
    };
    using Entry = std::pair<const std::uint64_t, Range>;  // by start

    // The range that holds `address`, or nullptr. Valid until the map changes.
    [[nodiscard]] const Entry* find(std::uint64_t address) const {
        const auto after = ranges_.upper_bound(address);
        if (after == ranges_.begin()) return nullptr;
        const Entry& entry = *std::prev(after);
        return address < entry.second.end ? &entry : nullptr;
    }

    // Sets the value of [start, end). Ranges that overlap it are cut, split or removed. An empty range has no effect.
    void lay(std::uint64_t start, std::uint64_t end, Value value) {
        if (start >= end) return;
        erase(start, end);
        ranges_.emplace(start, Range{end, std::move(value)});
    }

    void erase(std::uint64_t start, std::uint64_t end) {
        auto place = first_in(start);
        if (place != ranges_.end() && place->first < start) {
            const std::uint64_t old_end = std::exchange(place->second.end, start);
            if (old_end > end) ranges_.emplace(end, Range{old_end, place->second.value});
            ++place;
        }
        while (place != ranges_.end() && place->first < end) {
            if (place->second.end > end) {
                auto node = ranges_.extract(place);
                node.key() = end;
                ranges_.insert(std::move(node));
                return;
            }
            place = ranges_.erase(place);
        }
    }

    // Calls `visit(entry)` for each range that overlaps [start, end).
    template <class Visit>
    void for_each_in(std::uint64_t start, std::uint64_t end, Visit visit) const {
        for (auto place = first_in(start); place != ranges_.end() && place->first < end; ++place) visit(*place);
    }

    [[nodiscard]] std::size_t size() const { return ranges_.size(); }
    void clear() { ranges_.clear(); }
    [[nodiscard]] auto begin() const { return ranges_.begin(); }
    [[nodiscard]] auto end() const { return ranges_.end(); }

private:
    // The first range that ends after `address`.
    template <class Self>
    static auto first_of(Self& ranges, std::uint64_t address) {
        auto place = ranges.upper_bound(address);
        if (place != ranges.begin() && std::prev(place)->second.end > address) --place;
        return place;
    }
    auto first_in(std::uint64_t address) { return first_of(ranges_, address); }
    auto first_in(std::uint64_t address) const { return first_of(ranges_, address); }

    std::map<std::uint64_t, Range> ranges_;
};

}  // namespace flamewire
