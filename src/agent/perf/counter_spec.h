// What to count: from --stat to kernel events, each with what it can say here. Pure but for choose_counters, which tries
// them on the calling thread. docs/counters.md has the grammar, the defaults and the words.
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

struct WantedCounter {
    EventSpec spec;
    bool optional = false;  // by default only where it works: left out else, not named with a word
};

// `list` is what --stat says: "default" (or nothing), "none", or events in the grammar of --events. Errors: those of
// parse_events.
Result<std::vector<WantedCounter>> parse_counters(std::string_view list, const Sysfs& sysfs);

// One kernel event that counts. A counter of a hybrid CPU is several of these, one a PMU, with the same name.
struct Counter {
    std::string name;  // as asked for; with ":u" where the kernel may not be counted
    std::string unit;
    std::string part;                                           // the PMU, of a hybrid CPU; empty: there are no parts
    wire::CounterStatus status = wire::CounterStatus::counted;  // any other: it cannot be opened
    EventSpec spec;  // its modes, as they can be counted here, and the one part
    [[nodiscard]] const EventPart& event() const { return spec.parts.front(); }
};

struct CounterAttrOptions {
    bool inherit = true;
    bool group_read = true;       // a read of the leader gives the values of its group
    bool disabled = false;        // of a leader; the others follow it
    bool enable_on_exec = false;  // of a leader
};
perf_event_attr counter_attr(const EventSpec& spec, const EventPart& part, const CounterAttrOptions& options);

// Counters that work here and, with the word for it, those that do not. `user_only` (--no-kernel) leaves kernel mode out of what the
// CPU counts, as sampling does, so that both can be compared; what the kernel itself counts is counted whole.
std::vector<Counter> choose_counters(const std::vector<WantedCounter>& wanted, bool user_only,
                                     const Capabilities& capabilities, const Kernel& calls = real_kernel());

// "counted", "not counted", "unsupported", "never counts", "forbidden".
std::string_view name_of(wire::CounterStatus status);

}  // namespace flamewire::agent
