// The lines of folded stacks, and what a whole file of them is: with decimals or without, of one column or of two.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace flamewire::profile {

// `digits` / 10^`decimals`, exactly; the last digit is not 0 unless there are no decimals.
struct FoldedNumber {
    std::uint64_t digits = 0;
    int decimals = 0;

    [[nodiscard]] double value() const;
    // In units of 10^-`places`, at least 1 unless it is 0.
    [[nodiscard]] std::uint64_t scaled(int places) const;
};
// Digits with or without decimals and exponent; nothing for all else, and above 9e18.
std::optional<FoldedNumber> parse_folded_number(std::string_view text);

struct FoldedLine {
    std::string_view stack;  // without the last number
    FoldedNumber number;
    // Where another number stands before that: the line as one of two columns.
    struct Pair {
        std::string_view stack;
        FoldedNumber before;
    };
    std::optional<Pair> pair;
};
// False for what has no number behind it, or nothing but numbers before it.
std::optional<FoldedLine> parse_folded(std::string_view line);

struct FoldedShape {
    bool two_columns = false;  // of difffolded.pl: before and after
    int places = 0;            // decimals that weights keep: a multiple of 3, up to 18
    bool decimals = false;     // some number has them
};
// Looks at all lines before they are read: both are known only then.
class FoldedScan {
public:
    void line(std::string_view text);
    [[nodiscard]] FoldedShape shape() const;

private:
    std::uint64_t lines_ = 0, pairs_ = 0;
    std::array<int, 2> decimals_{};  // the most there are: of the last column, of the one before it
    std::array<double, 2> least_{}, sum_{};
};

}  // namespace flamewire::profile
