#include "symbol/files/perf_map.h"

#include <algorithm>
#include <utility>

#include "elf/perf_map_line.h"

namespace flamewire::symbol {
PerfMap::PerfMap(std::string text) : text_(std::move(text)) {
    std::vector<Interval> intervals;
    for (std::size_t at = 0; at < text_.size();) {
        const std::size_t end = std::min(text_.find('\n', at), text_.size());
        const std::string_view line = std::string_view(text_).substr(at, end - at);
        at = end + 1;
        const auto entry = elf::parse_perf_map_line(line);
        if (!entry) continue;
        if (names_.size() == max_lines) {
            cut_ = true;
            break;
        }
        intervals.push_back({entry->start, entry->start + entry->size, static_cast<std::uint32_t>(names_.size())});
        names_.push_back({static_cast<std::size_t>(entry->name.data() - text_.data()), entry->name.size()});
    }
    map_ = IntervalMap(std::move(intervals));
}

std::string_view PerfMap::find(std::uint64_t address) const {
    const std::uint32_t owner = map_.find(address);
    if (owner == IntervalMap::none) return {};
    return std::string_view(text_).substr(names_[owner].offset, names_[owner].size);
}

}  // namespace flamewire::symbol
