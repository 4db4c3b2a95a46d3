#include "agent/perf/trial.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/clock.h"

namespace flamewire::agent {
namespace {

constexpr std::uint64_t max_spin_ns = 50'000'000;

struct OpenPart {
    std::size_t trial;
    int fd;
};

// Opens one part on this thread, stepping down features that this kernel may lack. Updates the part and `precise` to
// what worked.
int open_part(EventPart& part, EventSpec& spec, const MakeAttr& make_attr, const Kernel& calls) {
    for (;;) {
        perf_event_attr attr = make_attr(spec, part);
        attr.inherit = 0;
        attr.disabled = 0;
        attr.enable_on_exec = 0;
        attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
        const int fd = calls.open(attr, 0, -1);
        if (fd >= 0) return fd;
        const bool refused = fd == -EINVAL || fd == -EOPNOTSUPP || fd == -ENOENT;
        if (refused && spec.precise > 0) {
            --spec.precise;
        } else if (!refused || !strip_pmu_type(part)) {
            return fd;
        }
    }
}

// The kernel itself counts software events and tracepoints: if one opens, it works. A raw code or a PMU's own event may
// be rare.
bool must_count(const EventPart& part) { return part.type == PERF_TYPE_HARDWARE || part.type == PERF_TYPE_HW_CACHE; }

// Triggers cycles, branches, cache and TLB misses and page faults, for about 50 µs.
void exercise(std::byte* memory, std::size_t size, std::uint32_t& seed) {
    ::madvise(memory, size, MADV_DONTNEED);
    for (int i = 0; i < 400; ++i) {
        seed = seed * 1'664'525 + 1'013'904'223;
        volatile std::byte* at = memory + (seed >> 8) % size;
        if ((seed & 0x10'0000) != 0)
            *at = static_cast<std::byte>(seed);
        else
            seed += std::to_integer<std::uint32_t>(*at);
    }
}

// Reads all parts; true if all hardware and cache events have counted.
bool read_counts(std::span<const OpenPart> open, std::vector<Trial>& trials, const Kernel& calls) {
    for (Trial& trial : trials) trial.counted = trial.scheduled = trial.error != 0;
    for (const OpenPart& part : open) {
        std::array<std::uint64_t, 3> values{};  // count, enabled, running
        if (calls.read(part.fd, values) < 3) continue;
        Trial& trial = trials[part.trial];
        trial.scheduled = trial.scheduled || values[2] > 0;
        trial.counted = trial.counted || values[0] > 0;
    }
    for (Trial& trial : trials)
        if (trial.error == 0 && !std::any_of(trial.spec.parts.begin(), trial.spec.parts.end(), must_count))
            trial.counted = trial.scheduled = true;
    return std::all_of(trials.begin(), trials.end(), [](const Trial& trial) { return trial.counted; });
}

void spin(std::span<const OpenPart> open, std::vector<Trial>& trials, const Kernel& calls) {
    if (read_counts(open, trials, calls)) return;
    constexpr std::size_t size = std::size_t{256} << 10;
    void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    std::uint32_t seed = 1;
    const std::uint64_t end = monotonic_ns() + max_spin_ns;
    do {
        exercise(static_cast<std::byte*>(memory), size, seed);
    } while (!read_counts(open, trials, calls) && monotonic_ns() < end);
    ::munmap(memory, size);
}

}  // namespace

int set_filter(int fd, const EventSpec& spec, const Kernel& calls) {
    if (spec.filter.empty()) return 0;
    return std::min(calls.ioctl(fd, PERF_EVENT_IOC_SET_FILTER, reinterpret_cast<unsigned long>(spec.filter.c_str())),
                    0);
}

std::vector<Trial> try_events(std::span<const EventSpec> specs, const SampleAttrOptions& options,
                              const Capabilities& capabilities, const Kernel& calls) {
    return try_events(
        specs,
        [&](const EventSpec& spec, const EventPart& part) { return sample_attr(spec, part, options, capabilities); },
        calls);
}

std::vector<Trial> try_events(std::span<const EventSpec> specs, const MakeAttr& make_attr, const Kernel& calls) {
    std::vector<Trial> trials;
    std::vector<OpenPart> open;
    for (const EventSpec& wanted : specs) {
        Trial trial{wanted};
        trial.spec.parts.clear();
        int first_error = 0;
        for (EventPart part : wanted.parts) {
            const int fd = open_part(part, trial.spec, make_attr, calls);
            if (fd < 0) {
                first_error = first_error != 0 ? first_error : -fd;
                continue;
            }
            trial.filter_error = -set_filter(fd, wanted, calls);
            open.push_back({trials.size(), fd});
            trial.spec.parts.push_back(std::move(part));
        }
        if (trial.spec.parts.empty()) trial.error = first_error != 0 ? first_error : ENOENT;
        trials.push_back(std::move(trial));
    }
    spin(open, trials, calls);
    for (const OpenPart& part : open) calls.close(part.fd);
    return trials;
}

}  // namespace flamewire::agent
