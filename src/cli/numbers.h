// Formats numbers for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace flamewire::cli {

// "1.23 s", "4.0 MiB", "1.23 M cycles", "123 faults": a weight in its unit, three to four digits.
std::string human_weight(double weight, std::string_view unit);
// "12.34"; "0.00" if `whole` is 0.
std::string percent(std::uint64_t part, std::uint64_t whole);

}  // namespace flamewire::cli
