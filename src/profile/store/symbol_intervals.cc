#include "profile/store/symbol_intervals.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <ranges>

namespace flamewire::profile {

bool SymbolIntervals::add(std::span<const SymbolInterval> added) {
    const auto before = [](const SymbolInterval& a, const SymbolInterval& b) { return a.start < b.start; };
    std::map<std::uint64_t, SymbolInterval> latest;
    for (const SymbolInterval& symbol : added) latest[symbol.start] = symbol;
    std::vector<SymbolInterval> merged;
    merged.reserve(latest.size() + intervals_.size());
    // Among equal starts the new symbols come first, and unique() keeps the first one.
    std::ranges::merge(latest | std::views::values, intervals_, std::back_inserter(merged), before);
    const auto same_start = [](const SymbolInterval& a, const SymbolInterval& b) { return a.start == b.start; };
    merged.erase(std::unique(merged.begin(), merged.end(), same_start), merged.end());
    if (merged == intervals_) return false;
    merged.shrink_to_fit();
    intervals_ = std::move(merged);
    return true;
}

StringId SymbolIntervals::find(std::uint64_t address) const {
    const auto after = std::upper_bound(intervals_.begin(), intervals_.end(), address,
                                        [](std::uint64_t value, const SymbolInterval& s) { return value < s.start; });
    if (after == intervals_.begin()) return 0;
    const SymbolInterval& symbol = *(after - 1);
    return symbol.size == 0 || address - symbol.start < symbol.size ? symbol.name : 0;
}

}  // namespace flamewire::profile
