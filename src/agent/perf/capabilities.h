// What this kernel, this CPU and these privileges allow, found by asking the kernel, never by its version.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "agent/perf/event_spec.h"
#include "base/result.h"
#include "wire/batch.h"

namespace flamewire::agent {

struct Capabilities {
    bool perf_events = false;       // perf_event_open exists and is allowed for own processes
    int paranoid = 0;               // kernel.perf_event_paranoid
    bool kernel_samples = false;    // kernel mode may be sampled
    bool format_lost = false;       // PERF_FORMAT_LOST (6.0)
    bool build_id = false;          // attr.build_id for mmap2 (5.12)
    bool clockid = false;           // attr.use_clockid
    std::uint32_t max_sample_rate_hz = 0;
    std::uint32_t max_stack = 127;  // kernel.perf_event_max_stack
    std::uint64_t mlock_bytes_per_cpu = 0;
    std::vector<std::string> pmus;
    std::vector<std::string> sampling_events;  // that delivered a sample or a count when tried
    std::vector<std::string> unwind_modes;     // {"fp"}
};

// Takes well under a second. Never fails: what cannot be found out is "no".
Capabilities probe_capabilities(const Sysfs& sysfs);

// The specs that can be opened here, with a notice for each replacement: cycles -> cpu-clock where no hardware counter
// works, kernel + user -> user only, a frequency above the kernel's limit -> the limit. unsupported when nothing is left.
struct EventChoice {
    std::vector<EventSpec> events;
    std::uint32_t frequency_hz = 0;  // effective; 0 when a period was asked for
    std::uint64_t period = 0;
    bool kernel = false;
    std::vector<wire::Notice> notices;
};
Result<EventChoice> choose_events(std::vector<EventSpec> wanted, std::uint32_t frequency_hz, std::uint64_t period,
                                  bool kernel, const Capabilities& capabilities);

}  // namespace flamewire::agent
