// Turns --stat into kernel events to count, each with its status on this machine. Pure, except for choose_counters,
// which tries events on the calling thread. docs/counters.md documents the grammar, the defaults and the status words.
#pragma once

#include <linux/perf_event.h>

#include <string>
#include <string_view>
#include <vector>

#include "agent/perf/capabilities.h"
#include "agent/perf/event_spec.h"
#include "agent/perf/kernel.h"
#include "base/result.h"
#include "wire/batch.h"

namespace flamewire::agent {

struct RequestedCounter {
    EventSpec spec;
    bool optional = false;  // one of the defaults: if it does not work here, it is left out without a status
};

// `list` is the value of --stat: "default" (or empty), "none", or events in the grammar of --events. Errors: those of
// parse_events.
Result<std::vector<RequestedCounter>> parse_counters(std::string_view list, const Sysfs& sysfs);

// One kernel event that counts. A counter of a hybrid CPU consists of several of these, one per PMU, with the same
// name.
struct Counter {
    std::string name;  // as requested; with ":u" if the kernel may not be counted
    std::string unit;
    std::string part;                                           // the PMU of a hybrid CPU; empty: there are no parts
    wire::CounterStatus status = wire::CounterStatus::counted;  // any other: it cannot be opened
    int filter_error = 0;                                       // errno, if the kernel refuses its filter
    EventSpec spec;  // its modes as they can be counted here, and the single part
    [[nodiscard]] const EventPart& event() const { return spec.parts.front(); }
};

struct CounterAttrOptions {
    bool inherit = true;
    bool group_read = true;       // reading the leader returns the values of its group
    bool disabled = false;        // of a leader; the others follow it
    bool enable_on_exec = false;  // of a leader
};
perf_event_attr counter_attr(const EventSpec& spec, const EventPart& part, const CounterAttrOptions& options);

// Counters that work here, and those that do not with the status that states why. `user_only` (--no-kernel) excludes
// kernel mode from what the CPU counts, as in sampling, so that the two are comparable. Events that the kernel itself
// counts are always counted in full.
std::vector<Counter> choose_counters(const std::vector<RequestedCounter>& wanted, bool user_only,
                                     const Capabilities& capabilities, const Kernel& calls = real_kernel());

// Counters with the same key may be in one group. Groups cannot mix PMUs: "cycles" and "cpu/event=0x3c/" belong to one,
// software events to another.
std::string group_key(const EventPart& part);
// Software events and tracepoints are always scheduled.
bool counted_by_kernel(const EventPart& part);

// "counted", "not counted", "unsupported", "never counts", "forbidden".
std::string_view name_of(wire::CounterStatus status);

}  // namespace flamewire::agent
