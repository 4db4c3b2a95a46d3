// What to sample, as a person says it and as the kernel wants it. Pure: text and a view of sysfs in, specs out.
// The grammar is perf's: `cycles`, `cpu-clock:u`, `r01c2`, `cpu_core/cycles/`, `cpu/event=0x3c,umask=0x1/`, each with
// an optional `@HZ`; several are separated by commas outside of slashes. Modifiers: u, k, and p (up to three) for
// hardware events. `off-cpu`, `run-queue`, `io-wait` and `woken-by` are times between context switches: all that are
// asked for are one spec, the last. Tracepoints: `sys:name`, or with a filter of the kernel's `sys:name/EXPR/`. docs/sampling.md has the
// whole grammar.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace flamewire::agent {

// One kernel event that stands behind a spec; a hybrid CPU has one a core PMU.
struct EventPart {
    std::string pmu;         // "cpu_core"; empty: the generic PMU
    std::uint32_t type = 0;  // perf_event_attr.type
    std::uint64_t config = 0, config1 = 0, config2 = 0;
    std::vector<std::uint32_t> cpus;  // the PMU's cpumask; empty: all CPUs
    // Of the tracepoint that tells of wake-ups: where its data has the thread that is woken; 0: another event.
    std::uint16_t woken_at = 0;
};

// Why a thread is not on a CPU, as far as the kernel tells.
enum class Away : std::uint8_t {
    off_cpu,    // it went to sleep
    run_queue,  // it could run, and waits for a CPU
    io_wait,    // it went to sleep where the kernel counts waits for devices
    woken_by,   // no absence of its own: each sleep that somebody ended, with that one's stack
};
inline constexpr std::size_t away_kinds = 4;
constexpr std::uint8_t bit_of(Away kind) { return static_cast<std::uint8_t>(1U << static_cast<unsigned>(kind)); }

struct EventSpec {
    std::string name;  // as asked for, without @HZ: what people see
    std::string unit;  // "cycles", "ns", "faults", "events", …
    std::vector<EventPart> parts;
    bool exclude_user = false, exclude_kernel = false;
    std::uint8_t precise = 0;                   // perf_event_attr.precise_ip, from :p, :pp, :ppp
    std::optional<std::uint32_t> frequency_hz;  // its own @HZ
    std::uint64_t period = 0;                   // its own, of faults; 0: as all are sampled
    std::uint8_t away = 0;                      // bits of Away: context switches that become times; 0: an event
    std::string filter;                         // of a tracepoint: the kernel's expression; "": all
    std::string fields;                         // of a tracepoint: what a filter may name, with commas
};

// Answers what the target's sysfs says: the content of a file below /sys, or not_found. Tests give a fake tree.
using SysfsReader = std::function<Result<std::string>(const std::string& relative_path)>;
// Names in a directory below /sys.
using SysfsLister = std::function<Result<std::vector<std::string>>(const std::string& relative_path)>;

struct Sysfs {
    SysfsReader read;
    SysfsLister list;
};
Sysfs real_sysfs();

// How an event is sampled: by one of the two, the other is 0. Its own comes before the one for all.
struct Pace {
    std::uint32_t frequency_hz = 0;
    std::uint64_t period = 0;
};
Pace pace_of(const EventSpec& spec, const Pace& of_all);

// The name of a kind of absence as an event.
std::string_view name_of(Away kind);

// The folders, relative to /sys, where tracefs is or may be mounted; the first that has an event is taken.
std::vector<std::string> tracefs_folders(const Sysfs& sysfs);

// invalid (or not_found: no such PMU or tracepoint here; permission: tracefs may not be read) with one sentence that
// names the bad part and what is known instead.
Result<std::vector<EventSpec>> parse_events(std::string_view list, const Sysfs& sysfs);

// Whether `list`, in the grammar of parse_events, sets whole words of an event's attributes: config=, config1=, config2=.
bool sets_config_words(std::string_view list);

}  // namespace flamewire::agent
