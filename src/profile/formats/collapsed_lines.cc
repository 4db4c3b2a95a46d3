#include "profile/formats/collapsed_lines.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "profile/formats/line_words.h"

namespace flamewire::profile {
namespace {

constexpr std::uint64_t most = 9'000'000'000'000'000'000;

std::uint64_t power_of_ten(int exponent) {
    std::uint64_t power = 1;
    for (int i = 0; i < exponent; ++i) power *= 10;
    return power;
}

struct Cut {
    std::string_view rest;
    FoldedNumber number;
};
std::optional<Cut> cut_number(std::string_view text) {
    const std::size_t space = text.find_last_of(" \t");
    if (space == std::string_view::npos) return {};
    const auto number = parse_folded_number(text.substr(space + 1));
    if (!number) return {};
    text = text.substr(0, space);
    trim_back(text);
    if (text.empty()) return {};
    return Cut{text, *number};
}

// Returns whether this is a row of a table: no frame separator, and every word is a number, a time or punctuation.
bool is_numbers(std::string_view stack) {
    if (stack.find(';') != std::string_view::npos) return false;
    constexpr std::string_view of_numbers = "0123456789.,:/+-%|";
    while (!stack.empty()) {
        const std::size_t end = std::min(stack.find_first_of(" \t"), stack.size());
        const std::string_view word = stack.substr(0, end);
        if (word.find_first_not_of(of_numbers) != std::string_view::npos &&
            !parse_folded_number(word.starts_with('-') ? word.substr(1) : word))
            return false;
        stack.remove_prefix(std::min(end + 1, stack.size()));
    }
    return true;
}

}  // namespace

double FoldedNumber::value() const { return static_cast<double>(digits) * std::pow(10.0, -decimals); }

std::uint64_t FoldedNumber::scaled(int places) const {
    if (digits == 0) return 0;
    constexpr int powers = 18;  // powers of ten that fit into 64 bits
    const int shift = places - decimals;
    if (shift < -powers) return 1;
    if (shift < 0) {
        const std::uint64_t unit = power_of_ten(-shift);
        return std::max<std::uint64_t>(digits / unit + (digits % unit >= unit / 2 ? 1 : 0), 1);
    }
    if (shift > powers || digits > most / power_of_ten(shift)) return most;
    return digits * power_of_ten(shift);
}

std::optional<FoldedNumber> parse_folded_number(std::string_view text) {
    FoldedNumber number;
    bool any = false, point = false, full = false;
    std::size_t at = 0;
    for (; at < text.size(); ++at) {
        const char c = text[at];
        if (c == '.' && !point) {
            point = true;
            continue;
        }
        if (!is_digit(c)) break;
        any = true;
        const auto digit = static_cast<std::uint64_t>(c - '0');
        full = full || number.digits > (most - digit) / 10;
        if (!full) {
            number.digits = number.digits * 10 + digit;
            number.decimals += point ? 1 : 0;
        } else if (!point) {
            return {};
        }
    }
    if (!any) return {};
    if (at < text.size()) {
        if (text[at] != 'e' && text[at] != 'E') return {};
        std::string_view power = text.substr(at + 1);
        if (power.starts_with('+')) power.remove_prefix(1);
        int exponent = 0;
        constexpr int furthest = 400;
        const auto [end, error] = std::from_chars(power.data(), power.data() + power.size(), exponent);
        if (error != std::errc() || end != power.data() + power.size() || std::abs(exponent) > furthest) return {};
        number.decimals -= exponent;
    }
    if (number.digits == 0) return FoldedNumber{};
    for (; number.decimals > 0 && number.digits % 10 == 0; --number.decimals) number.digits /= 10;
    for (; number.decimals < 0; ++number.decimals) {
        if (number.digits > most / 10) return {};
        number.digits *= 10;
    }
    return number;
}

std::optional<FoldedLine> parse_folded(std::string_view line) {
    trim_back(line);
    const auto last = cut_number(line);
    if (!last || is_numbers(last->rest)) return {};
    FoldedLine folded{last->rest, last->number, {}};
    if (const auto before = cut_number(last->rest); before && !is_numbers(before->rest))
        folded.pair = {before->rest, before->number};
    return folded;
}

void FoldedScan::line(std::string_view text) {
    const auto folded = parse_folded(text);
    if (!folded) return;
    ++lines_;
    const auto add = [&](std::size_t column, const FoldedNumber& number) {
        decimals_[column] = std::max(decimals_[column], number.decimals);
        const double value = number.value();
        sum_[column] += value;
        if (value > 0 && (least_[column] == 0 || value < least_[column])) least_[column] = value;
    };
    add(0, folded->number);
    if (!folded->pair) return;
    ++pairs_;
    add(1, folded->pair->before);
}

FoldedShape FoldedScan::shape() const {
    FoldedShape shape;
    shape.two_columns = lines_ != 0 && pairs_ == lines_;
    const std::size_t columns = shape.two_columns ? 2 : 1;
    int decimals = 0;
    double least = 0, sum = 0;
    for (std::size_t i = 0; i < columns; ++i) {
        decimals = std::max(decimals, decimals_[i]);
        sum += sum_[i];
        if (least_[i] > 0 && (least == 0 || least_[i] < least)) least = least_[i];
    }
    shape.decimals = decimals != 0;
    // Keep six significant digits of the smallest number; the rest is often noise of binary fractions.
    constexpr double precise = 1e6, largest_sum = 9e18;
    constexpr int step = 3, most_places = 18;
    while (shape.places < decimals && shape.places < most_places && least * std::pow(10.0, shape.places) < precise &&
           sum * std::pow(10.0, shape.places + step) <= largest_sum)
        shape.places += step;
    return shape;
}

}  // namespace flamewire::profile
