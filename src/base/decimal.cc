#include "base/decimal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace flamewire {
namespace {

std::uint64_t power_of_ten(unsigned digits) {
    std::uint64_t power = 1;
    for (unsigned i = 0; i < digits; ++i) power *= 10;
    return power;
}

std::string text_of(bool negative, std::uint64_t whole, std::uint64_t part, unsigned digits) {
    const char* sign = negative ? "-" : "";
    return digits == 0 ? fmt::format("{}{}", sign, whole) : fmt::format("{}{}.{:0{}}", sign, whole, part, digits);
}

}  // namespace

std::string decimal(std::int64_t value, unsigned digits) {
    const bool negative = value < 0;
    const std::uint64_t magnitude =
        negative ? std::uint64_t{0} - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
    const std::uint64_t unit = power_of_ten(digits);
    return text_of(negative, magnitude / unit, magnitude % unit, digits);
}

std::string fixed(double value, unsigned digits) {
    constexpr double limit = 0x1p63;
    const double magnitude = std::min(std::abs(value), limit);
    auto whole = static_cast<std::uint64_t>(magnitude);
    const std::uint64_t unit = power_of_ten(digits);
    const double rest = magnitude - static_cast<double>(whole);
    // Without digits, ties are rounded by the whole number's parity.
    if (digits == 0) return text_of(value < 0, static_cast<std::uint64_t>(std::nearbyint(magnitude)), 0, 0);
    const double scaled = rest * static_cast<double>(unit);
    double rounded = std::nearbyint(scaled);
    // The multiplication may have rounded to a tie. fma() recovers the lost part, which decides the direction.
    if (std::abs(scaled - rounded) == 0.5)
        if (const double lost = std::fma(rest, static_cast<double>(unit), -scaled); lost != 0)
            rounded = lost > 0 ? std::ceil(scaled) : std::floor(scaled);
    auto part = static_cast<std::uint64_t>(rounded);
    if (part == unit) {
        ++whole;
        part = 0;
    }
    return text_of(value < 0, whole, part, digits);
}

std::string with_commas(std::uint64_t number) {
    std::string text = std::to_string(number);
    for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, 1, ',');
    return text;
}

}  // namespace flamewire
