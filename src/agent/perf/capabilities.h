// What this kernel, CPU and set of privileges allow. Found by trying, never from the kernel version.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/perf/event_spec.h"
#include "agent/perf/kernel.h"
#include "base/result.h"
#include "unwind/frame/registers.h"
#include "wire/batch.h"

namespace flamewire::agent {

// The result of one check: what was tested, one sentence on the outcome, and a remedy if there is one.
struct Diagnostic {
    std::string code;  // "perf-events", "other-users", "kernel-samples", "event", …: docs/agent/commands.md lists all
    std::string name;  // of the event
    bool works = false;
    std::string text, remedy;
    bool operator==(const Diagnostic&) const = default;
};

struct Capabilities {
    bool perf_events = false;     // perf_event_open exists and is allowed for own processes
    int open_errno = 0;           // the reason if perf_events is false
    int paranoid = 0;             // kernel.perf_event_paranoid
    bool kernel_samples = false;  // kernel mode may be sampled
    bool format_lost = false;     // PERF_FORMAT_LOST (6.0)
    bool build_id = false;        // attr.build_id for mmap2 (5.12)
    bool clockid = false;         // attr.use_clockid
    std::uint32_t max_sample_rate_hz = 0;
    std::uint32_t max_stack = 127;  // kernel.perf_event_max_stack
    std::uint64_t mlock_bytes_per_cpu = 0;
    std::vector<std::string> pmus;
    std::vector<std::string> sampling_events;  // that worked when tried; empty before probe_capabilities
    std::uint64_t register_mask = 0;           // user registers that samples can carry (sample_regs_user); 0: none
    std::uint64_t stack_pointer_mask = 0;      // of these, sp and pc
    unwind::Arch register_arch{};              // the kernel's architecture, which may differ from this build's
    bool user_stacks = false;                  // samples can carry a copy of the user stack
    bool branch_stacks = false;                // samples can carry the CPU's call-stack branch records
    std::vector<std::string> unwind_modes;     // {"auto", "fp"}, plus "dwarf" and "lbr" if they work
    std::vector<Diagnostic> diagnostics;       // of probe_capabilities
};

// Architectures whose registers this build can request from the kernel: those that its unwinder may encounter. Empty on
// other architectures.
std::vector<unwind::Arch> sampled_architectures();

// "fp", "hybrid", "dwarf", "lbr".
std::string_view name_of(wire::StackMode mode);
// The mode with that name; nothing for "auto", with which the agent chooses the mode.
std::optional<wire::StackMode> stack_mode(std::string_view name);

// unsupported, with a sentence that states why `mode` does not work here and which modes do.
Result<bool> check_unwind_here(std::string_view mode, const Capabilities& capabilities);

// Why an event that was tried does not work.
struct Explanation;
struct EventProbe;
Explanation why_not(const EventProbe& probe, const Capabilities& capabilities);
std::string kernel_excluded_text(int paranoid);

// Reads sysctls, and opens and closes a few events: about 0.1 ms. Leaves sampling_events empty. Sufficient for
// recording. Never fails: what cannot be determined counts as unavailable.
Capabilities read_capabilities(const Sysfs& sysfs, const Kernel& calls = real_kernel());

// As above, and also tries the usual events on the calling thread, all at once. Spins for at most 50 ms, until all have
// counted. For an agent without a target, and for `reprobe`.
Capabilities probe_capabilities(const Sysfs& sysfs, const Kernel& calls = real_kernel());

// The specs that can be opened here, with a notice for each replacement: cycles -> cpu-clock if no hardware counter
// works, kernel + user -> user only, a frequency above the kernel's limit -> the limit. Tries only `wanted`: a hardware
// event costs microseconds, and one that opens but never counts costs 50 ms. Errors: unsupported or permission if no
// event is left; invalid if both frequency and period are missing, or if the kernel refuses a filter. A period takes
// precedence over a frequency. An empty `wanted` is valid.
struct EventChoice {
    std::vector<EventSpec> events;
    std::uint32_t frequency_hz = 0;  // effective; 0 if a period was requested
    std::uint64_t period = 0;
    bool kernel = false;
    std::vector<wire::Notice> notices;
};
// Samples per second of one busy CPU, summed over all events; 0 if an event has no known rate.
std::uint64_t sample_rate(const EventChoice& choice);
Result<EventChoice> choose_events(std::vector<EventSpec> wanted, std::uint32_t frequency_hz, std::uint64_t period,
                                  bool kernel, const Capabilities& capabilities, const Kernel& calls = real_kernel());

}  // namespace flamewire::agent
