// Limits how often the kernel's symbol names are scanned. A pass costs 40 ms of CPU time on a desktop and a second on a
// board, and new kernel addresses keep arriving. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

namespace flamewire::agent {

class NamesRateLimit {
public:
    // At most one pass in this time.
    static constexpr std::uint64_t least_pause_ns = 10'000'000'000;
    // Use at most 1/share of a CPU.
    static constexpr std::uint64_t share = 100;

    void begin(std::uint64_t now_ns) {
        spent_ns_ = 0;
        next_ns_ = now_ns + least_pause_ns;
    }
    // A part of the pass took `cpu_ns` of CPU time.
    void spend(std::uint64_t now_ns, std::uint64_t cpu_ns) {
        spent_ns_ += cpu_ns;
        next_ns_ = std::max(next_ns_, now_ns + spent_ns_ * share);
    }
    [[nodiscard]] bool may_begin(std::uint64_t now_ns) const { return now_ns >= next_ns_; }

private:
    std::uint64_t next_ns_ = 0, spent_ns_ = 0;
};

}  // namespace flamewire::agent
