// The paths of /proc and /sys, and functions that read files with one number. Everything in this folder reads only from
// these two trees, so that tests can substitute their own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace flamewire::agent {

struct HealthRoots {
    std::string proc = "/proc", sys = "/sys";
};

// Returns the number at the start of a file. Empty if the file does not exist, cannot be read (disabled sensors return
// an error) or does not start with a number.
std::optional<std::uint64_t> read_number(const std::string& path);
std::optional<std::int64_t> read_signed_number(const std::string& path);

}  // namespace flamewire::agent
