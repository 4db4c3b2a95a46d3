// What a file of Chrome's says, as values, before it becomes rows: events and nodes wait until names are known, which may
// stand behind them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profile/formats/json_shape.h"
#include "profile/string_table.h"

namespace flamewire::profile::chrome {

using ThreadKey = std::pair<std::uint32_t, std::uint32_t>;  // pid, tid

// Begin, end or all of something that a thread did; in microseconds.
struct Span {
    double start_us = 0, length_us = 0;
    StringId name = 0;
    char phase = 0;           // B, E or X
    std::uint32_t order = 0;  // in the file
};

struct Node {
    std::uint64_t id = 0, parent = 0;
    StringId name = 0, url = 0;
    std::uint32_t line = 0;  // from 1 on; 0: not known
};
struct CpuProfile {
    ThreadKey thread{0, 0};
    double start_us = 0;
    std::vector<Node> nodes;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> children;  // child, parent
    std::vector<std::uint64_t> samples;                             // node ids
    std::vector<double> deltas_us;                                  // before each sample
};

struct Content {
    StringTable texts;
    std::map<ThreadKey, std::vector<Span>> spans;
    std::map<ThreadKey, StringId> thread_names;
    std::map<std::uint32_t, StringId> process_names;
    std::map<std::pair<std::uint32_t, std::string>, CpuProfile> profiles;  // by pid and the profile's id
    std::uint64_t other_events = 0;                                        // of kinds that take no time
};

Result<JsonEnd> read(ImportJob& job, Content& content);

}  // namespace flamewire::profile::chrome
