#include "agent/perf/event_probe.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/clock.h"

namespace flamewire::agent {
namespace {

constexpr std::uint64_t max_spin_ns = 50'000'000;

struct OpenPart {
    std::size_t probe;
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
bool read_counts(std::span<const OpenPart> open, std::vector<EventProbe>& probes, const Kernel& calls) {
    for (EventProbe& probe : probes) probe.counted = probe.scheduled = probe.error != 0;
    for (const OpenPart& part : open) {
        std::array<std::uint64_t, 3> values{};  // count, enabled, running
        if (calls.read(part.fd, values) < 3) continue;
        EventProbe& probe = probes[part.probe];
        probe.scheduled = probe.scheduled || values[2] > 0;
        probe.counted = probe.counted || values[0] > 0;
    }
    for (EventProbe& probe : probes)
        if (probe.error == 0 && !std::any_of(probe.spec.parts.begin(), probe.spec.parts.end(), must_count))
            probe.counted = probe.scheduled = true;
    return std::all_of(probes.begin(), probes.end(), [](const EventProbe& probe) { return probe.counted; });
}

void spin(std::span<const OpenPart> open, std::vector<EventProbe>& probes, const Kernel& calls) {
    if (read_counts(open, probes, calls)) return;
    constexpr std::size_t size = std::size_t{256} << 10;
    void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    std::uint32_t seed = 1;
    const std::uint64_t end = monotonic_ns() + max_spin_ns;
    do {
        exercise(static_cast<std::byte*>(memory), size, seed);
    } while (!read_counts(open, probes, calls) && monotonic_ns() < end);
    ::munmap(memory, size);
}

}  // namespace

int set_filter(int fd, const EventSpec& spec, const Kernel& calls) {
    if (spec.filter.empty()) return 0;
    return std::min(calls.ioctl(fd, PERF_EVENT_IOC_SET_FILTER, reinterpret_cast<unsigned long>(spec.filter.c_str())),
                    0);
}

// The kernel writes its own explanation only for filters of the whole system, so this message lists the possible
// syntax.
Error filter_refused(const EventSpec& spec, int error) {
    return {
        ErrorCode::invalid, error,
        fmt::format("the kernel refuses the filter '{}' of {}: {}; it compares fields with numbers or \"texts\" (== "
                    "!= < <= > >= & ~), joined by && and ||; fields here: {}",
                    spec.filter, spec.name.substr(0, spec.name.find("/" + spec.filter)), std::strerror(error),
                    spec.fields)};
}

std::vector<EventProbe> probe_events(std::span<const EventSpec> specs, const SampleAttrOptions& options,
                                     const Capabilities& capabilities, const Kernel& calls) {
    return probe_events(
        specs,
        [&](const EventSpec& spec, const EventPart& part) { return sample_attr(spec, part, options, capabilities); },
        calls);
}

std::vector<EventProbe> probe_events(std::span<const EventSpec> specs, const MakeAttr& make_attr, const Kernel& calls) {
    std::vector<EventProbe> probes;
    std::vector<OpenPart> open;
    for (const EventSpec& wanted : specs) {
        EventProbe probe{wanted};
        probe.spec.parts.clear();
        int first_error = 0;
        for (EventPart part : wanted.parts) {
            // Parts of other processes differ in their addresses only, and this thread has few breakpoints.
            if (is_breakpoint(part) && !probe.spec.parts.empty()) {
                probe.spec.parts.push_back(std::move(part));
                continue;
            }
            const int fd = open_part(part, probe.spec, make_attr, calls);
            if (fd < 0) {
                first_error = first_error != 0 ? first_error : -fd;
                continue;
            }
            probe.filter_error = -set_filter(fd, wanted, calls);
            open.push_back({probes.size(), fd});
            probe.spec.parts.push_back(std::move(part));
        }
        if (probe.spec.parts.empty()) probe.error = first_error != 0 ? first_error : ENOENT;
        probes.push_back(std::move(probe));
    }
    spin(open, probes, calls);
    for (const OpenPart& part : open) calls.close(part.fd);
    return probes;
}

}  // namespace flamewire::agent
