// A cache of code in anonymous memory, read from live processes in lines of 64 bytes: samples hit the same addresses
// again and again. Not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace flamewire::agent {

class CodeCache {
public:
    // Copies the bytes at `address` into `out`; false if some are unreadable or the rate limit is reached. `process` is
    // a handle that is never reused. `pid` 0: the process has ended, so only cached lines are available.
    bool read(std::uint32_t process, std::uint32_t pid, std::uint64_t address, std::uint64_t now_ns,
              std::span<std::byte> out);

private:
    static constexpr std::size_t line_bytes = 64;
    struct Line {
        std::uint64_t address = 0;
        std::uint32_t process = 0;
        std::uint64_t read_ns = 0;  // 0: unused
        std::array<std::byte, line_bytes> bytes{};
    };

    // The line at `address`, which is a multiple of its size; null if it is not available.
    const Line* line_at(std::uint32_t process, std::uint32_t pid, std::uint64_t address, std::uint64_t now_ns);

    std::vector<Line> lines_;  // sets of two by a hash of process and address, the newer one first; empty until used
    std::uint64_t newest_ns_ = 0;
    std::uint64_t window_start_ns_ = 0;
    unsigned reads_ = 0;  // in the second that began at window_start_ns_
};

}  // namespace flamewire::agent
