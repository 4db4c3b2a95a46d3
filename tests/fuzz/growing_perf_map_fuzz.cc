// Arbitrary bytes as /tmp/perf-PID.map, which grows in two steps: each entry must be a range of addresses, and its line
// must be readable again.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "agent/process/perf_map.h"

using namespace flamewire;
using namespace flamewire::agent;

namespace {

void check(PerfMapFile& map, const PollTimes& times) {
    std::vector<JitEntry> entries;
    while (map.advance(1, times, entries) == JitProgress::more) {
    }
    for (const JitEntry& entry : entries) {
        const auto body = map.body_of(entry.record);
        const bool fits = body && body->start == entry.start && !body->name.empty() &&
                          body->name.size() <= max_jit_name_bytes && entry.start < entry.end &&
                          (entry.from_ns == 0 || (entry.from_ns >= times.previous_ns && entry.from_ns <= times.now_ns));
        if (!fits) std::abort();
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const int file = ::memfd_create("map", MFD_CLOEXEC);
    if (file < 0) return 0;
    const std::size_t half = size / 2;
    if (::write(file, data, half) < 0) std::abort();
    PerfMapFile map{UniqueFd(file)};
    check(map, {0, 1'000, 0});
    if (::write(file, data + half, size - half) < 0) std::abort();
    check(map, {1'000, 2'000, INT64_MAX});
    return 0;
}
