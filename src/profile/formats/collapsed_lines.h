// Parses lines of folded stacks, and detects whether a file has decimals and one or two columns.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace flamewire::profile {

// Exactly `digits` / 10^`decimals`, normalized: no trailing zeros after the decimal point.
struct FoldedNumber {
    std::uint64_t digits = 0;
    int decimals = 0;

    [[nodiscard]] double value() const;
    // In units of 10^-`places`; a positive number never becomes 0.
    [[nodiscard]] std::uint64_t scaled(int places) const;
};
// Parses digits with optional decimals and exponent. Returns nothing for any other text and for numbers above 9e18.
std::optional<FoldedNumber> parse_folded_number(std::string_view text);

struct FoldedLine {
    std::string_view stack;  // without the last number
    FoldedNumber number;
    // The line read as two columns, if another number precedes the last one.
    struct Pair {
        std::string_view stack;
        FoldedNumber before;
    };
    std::optional<Pair> pair;
};
// Returns nothing if the line does not end in a number, or if only numbers precede it (a table).
std::optional<FoldedLine> parse_folded(std::string_view line);

struct FoldedShape {
    bool two_columns = false;  // of difffolded.pl: before and after
    int places = 0;            // decimals that weights keep: a multiple of 3, up to 18
    bool decimals = false;     // at least one number has decimals
};
// Scans the whole file before it is imported: only the last line decides its shape.
class FoldedScan {
public:
    void line(std::string_view text);
    [[nodiscard]] FoldedShape shape() const;

private:
    std::uint64_t lines_ = 0, pairs_ = 0;
    std::array<int, 2> decimals_{};  // the maximum in the last column and in the one before it
    std::array<double, 2> least_{}, sum_{};
};

}  // namespace flamewire::profile
