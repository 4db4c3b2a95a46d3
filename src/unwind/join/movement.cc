#include "unwind/join/movement.h"

#include <algorithm>

namespace flamewire::unwind {
namespace {

// A way out and back is possible if it takes at most this many sample periods at the thread's fastest observed speed.
// The thread may be faster than observed: samples show only its position at both ends.
constexpr double possible_periods = 3.0;
// A way is ordinary if it takes at most this many periods.
constexpr double ordinary_periods = 1.5;

double time_of(std::uint64_t way, double speed) {
    if (way == 0) return 0.0;
    return speed > 0 ? static_cast<double>(way) / speed : 1e18;
}

}  // namespace

void Movement::note(std::uint64_t sp, double gap_ns) {
    // A waiting thread is not sampled, so a long pause is not a long period. The period follows the short gaps.
    if (period_ns == 0)
        period_ns = gap_ns;
    else
        period_ns += gap_ns < period_ns ? (gap_ns - period_ns) / 8 : std::min(gap_ns - period_ns, period_ns) / 64;
    const double time = std::max({gap_ns, period_ns / 2, 1.0});
    // Older movement counts less and less: a program has phases.
    constexpr double keep = 0.9998;
    out = std::max(out * keep, static_cast<double>(distance_out(last_sp, sp)) / time);
    in = std::max(in * keep, static_cast<double>(distance_out(sp, last_sp)) / time);
}

std::uint64_t Movement::length_of_way(std::uint64_t turn, std::uint64_t sp) const {
    return distance_out(last_sp, turn) + distance_out(sp, turn);
}

double Movement::time_of_way(std::uint64_t turn, std::uint64_t sp) const {
    return time_of(distance_out(last_sp, turn), out) + time_of(distance_out(sp, turn), in);
}

bool Movement::possible(std::uint64_t turn, std::uint64_t sp) const {
    return length_of_way(turn, sp) <= leap || time_of_way(turn, sp) <= possible_periods * period_ns;
}

bool Movement::ordinary(std::uint64_t turn, std::uint64_t sp, double gap_ns) const {
    return time_of_way(turn, sp) <= ordinary_periods * gap_ns;
}

}  // namespace flamewire::unwind
