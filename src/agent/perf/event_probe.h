// Determines which events work here by opening them on the calling thread and triggering them. An event that opens but
// never counts is not supported (as on some boards and virtual machines).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "agent/perf/attr.h"
#include "agent/perf/kernel.h"

namespace flamewire::agent {

// Sets a tracepoint's filter (EventSpec::filter, if any); returns 0 or -errno. Children that inherit the event have its
// filter.
int set_filter(int fd, const EventSpec& spec, const Kernel& calls);
// invalid, with the fields that a filter may use. `error`: the errno of set_filter().
Error filter_refused(const EventSpec& spec, int error);

// The result for one spec.
struct EventProbe {
    EventSpec spec;         // as it can be opened: without refused parts; precise may be lower
    int error = 0;          // errno, if no part could be opened
    int filter_error = 0;   // errno, if the event can be opened but its filter is refused
    bool counted = true;    // false: a hardware event opened but counted nothing
    bool scheduled = true;  // false: it never got a counter
    [[nodiscard]] bool works() const { return error == 0 && counted && scheduled; }
};

// Returns the attributes for opening one part of a spec. The trial chooses the thread and sets inheritance, enabling
// and read_format.
using MakeAttr = std::function<perf_event_attr(const EventSpec& spec, const EventPart& part)>;

// Tries all specs at once. Takes at most 50 ms, and only until all hardware events have counted.
std::vector<EventProbe> probe_events(std::span<const EventSpec> specs, const MakeAttr& make_attr, const Kernel& calls);
// Tries them as sampling events.
std::vector<EventProbe> probe_events(std::span<const EventSpec> specs, const SampleAttrOptions& options,
                                     const Capabilities& capabilities, const Kernel& calls);

}  // namespace flamewire::agent
