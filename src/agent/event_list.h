// Lists of events that a server can choose: the request and the result, without JSON. The server sorts them and writes
// them in the grammar of --events.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "agent/process/control_groups.h"

namespace flamewire::agent {

// `file`: not an event, but a file whose functions and USDT probes can be listed.
enum class EventKind : std::uint8_t { tracepoint, function, usdt, kernel_function, file };
inline constexpr std::array<std::string_view, 5> event_kind_names{"tracepoint", "function", "usdt", "kernel-function",
                                                                  "file"};  // in the order of EventKind

struct EventQuery {
    static constexpr std::size_t max_search_bytes = 256, max_text_bytes = 4'096;

    EventKind kind = EventKind::tracepoint;
    std::string search;    // words that the name has in this order, in any letter case; `*` and `?` are wildcards
    std::string file;      // of functions and USDT probes, as in a probe
    std::string describe;  // instead of a list: these events, in the grammar of --events
    std::vector<std::uint32_t> pids;  // whose files
    WideTarget wide;                  // instead of pids
};

struct ListedEvent {
    std::string name;               // of a function: its symbol; of a USDT probe: PROVIDER:NAME
    std::uint64_t offset = 0;       // of a function in the file, bytes
    std::uint32_t file = 0;         // index in EventList::files
    const char* problem = nullptr;  // why it cannot be probed: a sentence without its subject
};
struct EventList {
    // Of files and the kernel's functions, only the first 4,096.
    static constexpr std::size_t max_events = 4'096;

    std::vector<ListedEvent> events;
    std::vector<std::string> files;  // as the processes see them
    std::size_t total = 0;           // with those that are not in `events`
    bool kernel_functions = false;   // a server may probe them
    std::string description;         // only with EventQuery::describe: text as of --describe
};

}  // namespace flamewire::agent
