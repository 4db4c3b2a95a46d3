// How far a thread moves along its stack between two samples. Stack pointers in bytes, times in ns.
#pragma once

#include <cstdint>

namespace flamewire::unwind {

// The way from one stack pointer out to another. 0 if `to` is further in.
constexpr std::uint64_t distance_out(std::uint64_t from, std::uint64_t to) { return to > from ? to - from : 0; }

struct Movement {
    double out = 0, in = 0;  // fastest, in bytes per ns, towards the root and away from it
    double period_ns = 0;    // between samples while it runs
    std::uint64_t leap = 0;  // longest way that no sample saw
    std::uint64_t last_sp = 0;

    // A sample at `sp`, `gap_ns` after the one at last_sp. Leaves last_sp unchanged.
    void note(std::uint64_t sp, double gap_ns);
    // The length of the way from last_sp out to `turn` and back in to `sp`.
    [[nodiscard]] std::uint64_t length_of_way(std::uint64_t turn, std::uint64_t sp) const;
    // Whether the thread can have gone that way since its last sample.
    [[nodiscard]] bool possible(std::uint64_t turn, std::uint64_t sp) const;
    // Whether that way fits into `gap_ns` at the fastest observed speed.
    [[nodiscard]] bool ordinary(std::uint64_t turn, std::uint64_t sp, double gap_ns) const;

private:
    [[nodiscard]] double time_of_way(std::uint64_t turn, std::uint64_t sp) const;
};

}  // namespace flamewire::unwind
