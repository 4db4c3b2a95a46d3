#include "views/sql/table.h"

#include <algorithm>
#include <cmath>

namespace flamewire::views::sql {
namespace {

using Comparison = Scan::Comparison;

constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t highest = std::numeric_limits<std::int64_t>::max();

// The integers that compare so with the number.
Range integers(Comparison comparison, std::int64_t number) {
    switch (comparison) {
        case Comparison::equal: return {number, number};
        case Comparison::less: return number == lowest ? Range{highest, lowest} : Range{lowest, number - 1};
        case Comparison::less_or_equal: return {lowest, number};
        case Comparison::greater: return number == highest ? Range{highest, lowest} : Range{number + 1, highest};
        case Comparison::greater_or_equal: return {number, highest};
    }
    return {};
}

// Contains the integers that compare so with the number, and perhaps one more.
Range integers(Comparison comparison, double number) {
    constexpr double limit = 9.2e18;
    if (!(std::abs(number) < limit)) return {};
    const auto below = static_cast<std::int64_t>(std::floor(number)),
               above = static_cast<std::int64_t>(std::ceil(number));
    switch (comparison) {
        case Comparison::equal: return {below, above};
        case Comparison::less:
        case Comparison::less_or_equal: return {lowest, above};
        case Comparison::greater:
        case Comparison::greater_or_equal: return {below, highest};
    }
    return {};
}

}  // namespace

Range Scan::range(std::string_view column) const {
    Range range;
    for (const Condition& condition : conditions_) {
        if (condition.column != column) continue;
        Range one;
        if (const auto* number = std::get_if<std::int64_t>(&condition.value))
            one = integers(condition.comparison, *number);
        else if (const auto* real = std::get_if<double>(&condition.value))
            one = integers(condition.comparison, *real);
        range = {std::max(range.low, one.low), std::min(range.high, one.high)};
    }
    return range;
}

std::optional<std::int64_t> Scan::number(std::string_view column) const {
    const Range found = range(column);
    if (found.low != found.high) return std::nullopt;
    return found.low;
}

std::optional<std::string_view> Scan::text(std::string_view column) const {
    for (const Condition& condition : conditions_) {
        if (condition.column != column || condition.comparison != Comparison::equal) continue;
        if (const auto* view = std::get_if<std::string_view>(&condition.value)) return *view;
    }
    return std::nullopt;
}

}  // namespace flamewire::views::sql
