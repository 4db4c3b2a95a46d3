// Formats numbers with a fraction as text. Printing a double through a library would add 12 KB to the agent.
#pragma once

#include <cstdint>
#include <string>

namespace flamewire {

// `value` in units of 10^-digits (digits <= 18): 1234 with 2 digits is "12.34".
std::string decimal(std::int64_t value, unsigned digits);
// `value` rounded to `digits` digits (<= 9), ties to even. A magnitude above 2^63 is formatted as 2^63.
std::string fixed(double value, unsigned digits);
// Example: 1,234,567.
std::string with_commas(std::uint64_t number);

}  // namespace flamewire
