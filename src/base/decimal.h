// Numbers with a fraction as text, without a library's way to print a double: that is 12 KB of the agent.
#pragma once

#include <cstdint>
#include <string>

namespace flamewire {

// `value` in units of 10^-digits (digits <= 18): 1234 with 2 digits is "12.34".
std::string decimal(std::int64_t value, unsigned digits);
// `value` rounded to so many digits (<= 9), a tie to the even one. Below 2^63 either way; of others that limit.
std::string fixed(double value, unsigned digits);
// 1,234,567
std::string with_commas(std::uint64_t number);

}  // namespace flamewire
