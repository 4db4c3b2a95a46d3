#include "base/clock.h"

#include <charconv>
#include <ctime>
#include <string_view>

#include "base/file.h"

namespace flamewire {

static std::int64_t read_clock(clockid_t clock) {
    timespec now{};
    ::clock_gettime(clock, &now);
    return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

// Samples are stamped by the kernel's own CLOCK_MONOTONIC, whatever time namespace (time_namespaces(7)) we are in, so that is
// the one to tell. How far this time namespace's CLOCK_MONOTONIC is ahead of the kernel's: "monotonic  SECONDS  NANOSECONDS". 0 without
// namespaces of that kind (before Linux 5.6).
static std::int64_t namespace_offset_ns() {
    const auto text = read_file("/proc/self/timens_offsets", 256);
    if (!text || !text->starts_with("monotonic ")) return 0;
    const char* at = text->data() + std::string_view("monotonic ").size();
    const char* const end = text->data() + text->size();
    std::int64_t parts[2] = {0, 0};
    for (std::int64_t& part : parts) {
        while (at != end && *at == ' ') ++at;
        at = std::from_chars(at, end, part).ptr;
    }
    return parts[0] * 1'000'000'000 + parts[1];
}

std::uint64_t monotonic_ns() {
    static const std::int64_t offset_ns = namespace_offset_ns();
    return static_cast<std::uint64_t>(read_clock(CLOCK_MONOTONIC) - offset_ns);
}
std::int64_t realtime_ns() { return read_clock(CLOCK_REALTIME); }
std::uint64_t process_cpu_ns() { return static_cast<std::uint64_t>(read_clock(CLOCK_PROCESS_CPUTIME_ID)); }

}  // namespace flamewire
