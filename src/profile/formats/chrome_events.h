// The content of a file in Chrome's formats, before it becomes rows: events and nodes wait until names are known, which may
// stand behind them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "profile/formats/json_shape.h"
#include "profile/store/string_table.h"

namespace flamewire::profile::chrome {

// pid and tid as texts: besides numbers there are names and negative numbers.
using ThreadKey = std::pair<StringId, StringId>;

// Begin, end or all of something that a thread did; in microseconds.
struct Span {
    double start_us = 0, length_us = 0;
    StringId name = 0;
    char phase = 0;           // B, E or X
    std::uint32_t order = 0;  // in the file
};

// A frame with its callers.
struct Node {
    std::uint64_t id = 0, parent = 0;
    StringId name = 0, url = 0;
    std::uint32_t line = 0;  // from 1 on; 0: not known
    std::uint32_t hits = 0;  // samples, in profiles that do not list them
};
struct CallTree {
    std::vector<Node> nodes;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> children;  // child, parent: overrides Node::parent
};

// The samples of a thread. Times in microseconds.
struct Samples {
    ThreadKey thread{0, 0};
    double start_us = 0, end_us = 0;  // of the profile; 0: not known
    std::vector<std::uint64_t> nodes;
    // One of them is there, or neither: then the samples are spread over the profile.
    std::vector<double> deltas_us;  // before each sample
    std::vector<double> times_us;
};
struct CpuProfile {
    CallTree tree;
    Samples samples;
    bool in_seconds = false;  // start and end, as long as V8 wrote the tree itself
};

struct Content {
    StringTable texts;
    std::map<ThreadKey, std::vector<Span>> spans;
    std::map<ThreadKey, StringId> thread_names;
    std::map<StringId, StringId> process_names;
    std::map<std::pair<StringId, std::string>, CpuProfile> profiles;  // by pid and the profile's id
    CallTree stack_frames;                                            // of a trace; a node's id is that of its text
    std::map<ThreadKey, Samples> samples;                             // of a trace, in stack_frames
    std::uint64_t other_events = 0;                                   // of kinds that take no time
};

Result<JsonEnd> read(ImportJob& job, Content& content);

}  // namespace flamewire::profile::chrome
