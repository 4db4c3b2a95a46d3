// Bytes of code that no file has, read from live processes a line at a time and cached: a sampler asks for the same
// addresses again and again. Not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace flamewire::agent {

class CodeCache {
public:
    // Fills `out` with what the process has at `address`; false when it is not all there, or too much was read just now.
    // `process` is a handle that is never reused; `pid` 0: it has ended, so only what is cached is known.
    bool read(std::uint32_t process, std::uint32_t pid, std::uint64_t address, std::uint64_t now_ns,
              std::span<std::byte> out);

private:
    static constexpr std::size_t line_bytes = 64;
    struct Line {
        std::uint64_t address = 0;
        std::uint32_t process = 0;
        std::uint64_t read_ns = 0;
        bool readable = false;
        std::array<std::byte, line_bytes> bytes;
    };

    const Line* line_at(std::uint32_t process, std::uint32_t pid, std::uint64_t address, std::uint64_t now_ns);

    std::vector<Line> lines_;  // by a hash of process and address; empty until something is read
    std::uint64_t second_ns_ = 0;
    unsigned reads_ = 0;  // in the second that began at second_ns_
};

}  // namespace flamewire::agent
