// Where /proc and /sys are, and the reading of files there that hold one number. Everything below this folder takes its
// values from these two trees, so that a test can make them up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace flamewire::agent {

struct HealthRoots {
    std::string proc = "/proc", sys = "/sys";
};

// The number that a file begins with; nothing when there is no such file, it may not be read (sensors that are switched
// off answer with an error) or holds something else.
std::optional<std::uint64_t> read_number(const std::string& path);
std::optional<std::int64_t> read_signed_number(const std::string& path);

}  // namespace flamewire::agent
