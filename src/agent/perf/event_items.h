// A list of events as text: its items, and the marks before them. Pure. event_spec.h parses the items.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace flamewire::agent {

// Without spaces around it.
std::string_view trim(std::string_view text);

// What precedes an event: whether its samples are kept.
enum class Mark : std::uint8_t {
    none,
    trace,    // "trace:"
    trigger,  // "trigger:": traced, and other traced events only from its first sample on
};
// Removes the mark from `item`.
Mark take_mark(std::string_view& item);

// Splits at commas that do not belong to an event: those inside slashes belong to a PMU's terms or to a filter. In probes
// and breakpoints, only quotes and unquoted paths have commas.
std::vector<std::string_view> split_list(std::string_view list);

// `list` with each event marked as traced.
std::string traced_events(std::string_view list);
// Whether an event of `list` is marked so.
bool traces_events(std::string_view list);

}  // namespace flamewire::agent
