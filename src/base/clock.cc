#include "base/clock.h"

#include <ctime>

namespace flamewire {

static std::int64_t read_clock(clockid_t clock) {
    timespec now{};
    ::clock_gettime(clock, &now);
    return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

std::uint64_t monotonic_ns() { return static_cast<std::uint64_t>(read_clock(CLOCK_MONOTONIC)); }
std::int64_t realtime_ns() { return read_clock(CLOCK_REALTIME); }
std::uint64_t process_cpu_ns() { return static_cast<std::uint64_t>(read_clock(CLOCK_PROCESS_CPUTIME_ID)); }

}  // namespace flamewire
