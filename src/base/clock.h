// Clocks in nanoseconds. Samples use CLOCK_MONOTONIC. Times for people use CLOCK_REALTIME.
#pragma once

#include <cstdint>

namespace flamewire {

std::uint64_t monotonic_ns();
std::int64_t realtime_ns();
std::uint64_t boottime_ns();
// CPU time of this process (all threads) and of the calling thread.
std::uint64_t process_cpu_ns();
std::uint64_t thread_cpu_ns();

}  // namespace flamewire
