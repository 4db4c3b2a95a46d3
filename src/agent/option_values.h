// Values of options and of the arguments of commands. Each error message names `what`, the option or the argument.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "agent/process/control_groups.h"
#include "base/result.h"

namespace flamewire::agent {

// An integer from `lowest` to `highest`; a number of bytes may have a K, M or G (powers of 1,024).
Result<std::uint64_t> parse_number(std::string_view what, std::string_view text, std::uint64_t lowest,
                                   std::uint64_t highest);
Result<std::uint64_t> parse_bytes(std::string_view what, std::string_view text, std::uint64_t lowest,
                                  std::uint64_t highest);
// Lists with commas. Repeated processes count once.
Result<bool> parse_pids(std::string_view what, std::string_view text, std::vector<std::uint32_t>& pids);
Result<bool> parse_words(std::string_view what, std::string_view text, std::vector<std::string>& words);

// Parses a list such as "0-3,6". The result is ascending.
Result<bool> parse_cpus(std::string_view what, std::string_view text, std::vector<std::uint32_t>& cpus);
// Reports members that exclude each other.
Result<bool> check_wide(const WideTarget& wide);

// Rounds up to a size that the kernel can copy.
std::uint32_t whole_words(std::uint64_t stack_bytes);

// Accepts auto, fp, dwarf, lbr or hybrid. Otherwise the error message lists the modes. check_unwind_here checks whether
// the mode works on this machine.
Result<bool> check_unwind(std::string_view mode);

}  // namespace flamewire::agent
