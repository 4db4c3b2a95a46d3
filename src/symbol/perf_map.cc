#include "symbol/perf_map.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

namespace flamewire::symbol {
namespace {

// Takes a number and the blanks behind it off the front; some writers put 0x before it.
std::optional<std::uint64_t> take_number(std::string_view& line) {
    if (line.starts_with("0x")) line.remove_prefix(2);
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number, 16);
    if (error != std::errc{} || end == line.data() + line.size() || *end != ' ') return std::nullopt;
    line.remove_prefix(static_cast<std::size_t>(end - line.data()));
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    return number;
}

}  // namespace

PerfMap::PerfMap(std::string text) : text_(std::move(text)) {
    std::vector<Interval> intervals;
    for (std::size_t at = 0; at < text_.size();) {
        const std::size_t end = std::min(text_.find('\n', at), text_.size());
        std::string_view line = std::string_view(text_).substr(at, end - at);
        at = end + 1;
        if (line.ends_with('\r')) line.remove_suffix(1);
        const auto start = take_number(line);
        const auto size = start ? take_number(line) : std::nullopt;
        if (!size || *size == 0 || line.empty() || *size > std::numeric_limits<std::uint64_t>::max() - *start) continue;
        if (names_.size() == max_lines) {
            cut_ = true;
            break;
        }
        intervals.push_back({*start, *start + *size, static_cast<std::uint32_t>(names_.size())});
        names_.push_back({static_cast<std::size_t>(line.data() - text_.data()), line.size()});
    }
    map_ = IntervalMap(std::move(intervals));
}

std::string_view PerfMap::find(std::uint64_t address) const {
    const std::uint32_t owner = map_.find(address);
    if (owner == IntervalMap::none) return {};
    return std::string_view(text_).substr(names_[owner].offset, names_[owner].size);
}

}  // namespace flamewire::symbol
