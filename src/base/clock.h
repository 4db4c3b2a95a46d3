// The two clocks of Flamewire. Samples carry CLOCK_MONOTONIC; people read CLOCK_REALTIME.
#pragma once

#include <cstdint>

namespace flamewire {

std::uint64_t monotonic_ns();
std::int64_t realtime_ns();
// CPU time that this process has used, all threads.
std::uint64_t process_cpu_ns();

}  // namespace flamewire
