// Finds out which events work here by opening them on the calling thread and making them happen: an event that opens
// but never counts is not supported (counters of some boards and virtual machines do that).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "agent/perf/attr.h"
#include "agent/perf/kernel.h"

namespace flamewire::agent {

// Tells the kernel which hits of a tracepoint count (EventSpec::filter, if any): 0 or -errno. Children that inherit the
// event have its filter.
int set_filter(int fd, const EventSpec& spec, const Kernel& calls);

// The answer for one spec.
struct Trial {
    EventSpec spec;         // as it can be opened: parts that the kernel refused are gone, precise may be lower
    int error = 0;          // errno, when no part could be opened
    int filter_error = 0;   // errno, when it can be opened but its filter is refused
    bool counted = true;    // false: a hardware event opened but counted nothing
    bool scheduled = true;  // false: it never got a counter
    [[nodiscard]] bool works() const { return error == 0 && counted && scheduled; }
};

// The attributes that one part of a spec is to be opened with; whose thread it is for, and how it is read, is up to the trial.
using MakeAttr = std::function<perf_event_attr(const EventSpec& spec, const EventPart& part)>;

// All specs at once. At most 50 ms, and only as long as some hardware event has not counted yet.
std::vector<Trial> try_events(std::span<const EventSpec> specs, const MakeAttr& make_attr, const Kernel& calls);
// As samples.
std::vector<Trial> try_events(std::span<const EventSpec> specs, const SampleAttrOptions& options,
                              const Capabilities& capabilities, const Kernel& calls);

}  // namespace flamewire::agent
