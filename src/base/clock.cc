#include "base/clock.h"

#include "base/system.h"

namespace flamewire {

static std::uint64_t read_clock(Clock clock) { return static_cast<std::uint64_t>(System::current().now(clock)); }

std::uint64_t monotonic_ns() { return read_clock(Clock::monotonic); }
std::int64_t realtime_ns() { return System::current().now(Clock::realtime); }
std::uint64_t boottime_ns() { return read_clock(Clock::boottime); }
std::uint64_t process_cpu_ns() { return read_clock(Clock::process_cpu); }
std::uint64_t thread_cpu_ns() { return read_clock(Clock::thread_cpu); }

}  // namespace flamewire
