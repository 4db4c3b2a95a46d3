// How often the kernel's names may be looked for: a pass over them costs 40 ms of CPU on a desk and a second on a board,
// and new kernel addresses keep coming. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

namespace flamewire::agent {

class NamesPace {
public:
    // At most one pass in this time, whatever is asked, …
    static constexpr std::uint64_t least_pause_ns = 10'000'000'000;
    // … and never more than this part of a CPU.
    static constexpr std::uint64_t share = 100;

    void begin(std::uint64_t now_ns) {
        spent_ns_ = 0;
        next_ns_ = now_ns + least_pause_ns;
    }
    // A piece of the pass took so much CPU time.
    void spend(std::uint64_t now_ns, std::uint64_t cpu_ns) {
        spent_ns_ += cpu_ns;
        next_ns_ = std::max(next_ns_, now_ns + spent_ns_ * share);
    }
    [[nodiscard]] bool may_begin(std::uint64_t now_ns) const { return now_ns >= next_ns_; }

private:
    std::uint64_t next_ns_ = 0, spent_ns_ = 0;
};

}  // namespace flamewire::agent
