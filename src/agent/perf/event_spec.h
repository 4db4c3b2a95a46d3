// Parses what to sample into kernel events. Pure: takes text and a view of sysfs, returns specs.
// The grammar is perf's: `cycles`, `cpu-clock:u`, `r01c2`, `cpu_core/cycles/`, `cpu/event=0x3c,umask=0x1/`, each with
// an optional `@HZ`. Commas outside slashes separate events. Modifiers: u, k, and p (up to three) for hardware events.
// `off-cpu`, `run-queue`, `io-wait` and `woken-by` are times between context switches: all that are requested form one
// spec, the last. Tracepoints: `sys:name`, or with a kernel filter `sys:name/EXPR/`; a `*` in the name stands for all of
// the system that match, each of which becomes a spec. Probes: probe_spec.h. Breakpoints: breakpoint_spec.h.
// `trace:` before an event keeps each of its samples with its values, `trigger:` those of all traced events from then on.
// docs/sampling/events.md documents the whole grammar.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/perf/breakpoint_spec.h"
#include "agent/perf/probe_spec.h"
#include "base/result.h"
#include "perf/tracepoint_format.h"

namespace flamewire::agent {

// One kernel event of a spec. On a hybrid CPU there is one per core PMU.
struct EventPart {
    std::string pmu;         // "cpu_core"; probe_pmu; empty: the generic PMU
    std::uint32_t type = 0;  // perf_event_attr.type
    // perf_event_attr.config, …; of a breakpoint as in breakpoint_spec.h
    std::uint64_t config = 0, config1 = 0, config2 = 0;
    std::vector<std::uint32_t> cpus;  // the PMU's cpumask; empty: all CPUs
    // For the wake-up tracepoint: offset of the woken thread's tid in its data; 0: another event.
    std::uint16_t woken_at = 0;
    std::shared_ptr<const perf::SampleValues> values = {};  // of a tracepoint, if its format is known
};

// EventPart::pmu of a tracepoint that is a probe in user code. Probes in the kernel are like its other tracepoints.
inline constexpr std::string_view probe_pmu = "uprobe";

// Why a thread is not on a CPU, as far as the kernel reports it.
enum class OffCpuReason : std::uint8_t {
    off_cpu,    // it went to sleep
    run_queue,  // it is runnable and waits for a CPU
    io_wait,    // it went to sleep where the kernel accounts I/O wait
    woken_by,   // not off-CPU time: each sleep that another thread ended, with the waker's call chain
};
inline constexpr std::size_t off_cpu_reasons = 4;
constexpr std::uint8_t bit_of(OffCpuReason kind) {
    return static_cast<std::uint8_t>(1U << static_cast<unsigned>(kind));
}

struct EventSpec {
    std::string name;  // as requested, without @HZ; shown to users
    std::string unit;  // "cycles", "ns", "faults", "events", …
    std::vector<EventPart> parts;
    bool exclude_user = false, exclude_kernel = false;
    std::uint8_t precise = 0;                   // perf_event_attr.precise_ip, from :p, :pp, :ppp
    std::optional<std::uint32_t> frequency_hz;  // its own @HZ
    std::uint64_t period = 0;  // its own, for faults, probes and breakpoints; 0: the common rate applies
    std::uint8_t off_cpu = 0;  // bits of OffCpuReason: context switches that become times; 0: an event
    std::string filter;        // of a tracepoint: the kernel's filter expression; "": all hits
    std::string fields;        // of a tracepoint: fields that a filter may use, separated by commas
    // A probe that is not placed yet, so it has no parts; agent/probes/place_probes.h adds them.
    std::shared_ptr<const ProbeSpec> probe = {};
    bool traced = false;   // each sample is also kept with its values
    bool trigger = false;  // samples of all traced events are kept from its first one on
    // A breakpoint on a symbol, which has no parts until agent/probes/place_breakpoints.h adds them.
    std::optional<BreakpointSpec> breakpoint = {};
};

// Returns the content of a file below the target's /sys, or not_found. Tests provide a fake tree.
using SysfsReader = std::function<Result<std::string>(const std::string& relative_path)>;
// Names in a directory below /sys.
using SysfsLister = std::function<Result<std::vector<std::string>>(const std::string& relative_path)>;

struct Sysfs {
    SysfsReader read;
    SysfsLister list;
};
Sysfs real_sysfs();

// How an event is sampled: by frequency or by period; the other is 0. The event's own setting takes precedence over the
// common one.
struct SamplingRate {
    std::uint32_t frequency_hz = 0;
    std::uint64_t period = 0;
};
SamplingRate sampling_rate_of(const EventSpec& spec, const SamplingRate& of_all);

// The event name of `kind`.
std::string_view name_of(OffCpuReason kind);

// Errors: invalid, not_found (no such PMU or tracepoint here), or permission (tracefs is not readable). The sentence
// names the invalid part and the known alternatives.
Result<std::vector<EventSpec>> parse_events(std::string_view list, const Sysfs& sysfs);

// Whether `list`, in the grammar of parse_events, sets raw attribute words: config=, config1=, config2=.
bool sets_config_words(std::string_view list);

}  // namespace flamewire::agent
