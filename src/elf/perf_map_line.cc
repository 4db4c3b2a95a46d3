#include "elf/perf_map_line.h"

#include <algorithm>
#include <charconv>

namespace flamewire::elf {
namespace {

// Removes a number and the spaces after it from the front of the line. Some writers prefix it with 0x.
std::optional<std::uint64_t> take_number(std::string_view& line) {
    if (line.starts_with("0x") || line.starts_with("0X")) line.remove_prefix(2);
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number, 16);
    if (error != std::errc{} || end == line.data() + line.size() || *end != ' ') return std::nullopt;
    line.remove_prefix(static_cast<std::size_t>(end - line.data()));
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    return number;
}

}  // namespace

std::optional<PerfMapLine> parse_perf_map_line(std::string_view line) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    const auto start = take_number(line);
    const auto size = start ? take_number(line) : std::nullopt;
    if (!size || *size == 0 || *start + *size < *start || line.empty()) return std::nullopt;
    return PerfMapLine{*start, *size, line};
}

}  // namespace flamewire::elf
