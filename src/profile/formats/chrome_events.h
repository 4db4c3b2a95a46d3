// The content of a file in Chrome's formats before it becomes rows. Events and nodes wait until all names are read,
// because names can follow them in the file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "profile/formats/json_shape.h"
#include "profile/store/string_table.h"

namespace flamewire::profile::chrome {

// pid and tid as text: some files have names or negative numbers there.
using ThreadKey = std::pair<StringId, StringId>;

// The begin event, the end event or the whole of a thread's activity. Times are in microseconds.
struct Span {
    double start_us = 0, length_us = 0;
    StringId name = 0;
    char phase = 0;           // B, E or X
    std::uint32_t order = 0;  // position in the file
};

// A frame of a call tree, with its parent.
struct Node {
    std::uint64_t id = 0, parent = 0;
    StringId name = 0, url = 0;
    std::uint32_t line = 0;  // 1-based; 0: unknown
    std::uint32_t hits = 0;  // number of samples, in profiles that do not list the samples
};
struct CallTree {
    std::vector<Node> nodes;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> children;  // (child, parent); overrides Node::parent
};

// The samples of a thread. Times are in microseconds.
struct Samples {
    ThreadKey thread{0, 0};
    double start_us = 0, end_us = 0;  // of the profile; 0: unknown
    std::vector<std::uint64_t> nodes;
    // A file has one of these or neither. With neither, the samples are spread evenly over the profile.
    std::vector<double> deltas_us;  // time before each sample
    std::vector<double> times_us;
};
struct CpuProfile {
    CallTree tree;
    Samples samples;
    bool in_seconds = false;  // start_us and end_us are in seconds: older V8 versions wrote a nested tree
};

struct Content {
    StringTable texts;
    std::map<ThreadKey, std::vector<Span>> spans;
    std::map<ThreadKey, StringId> thread_names;
    std::map<StringId, StringId> process_names;
    std::map<std::pair<StringId, std::string>, CpuProfile> profiles;  // by pid and the profile's id
    CallTree stack_frames;                 // of a trace; a node's id is the id of its text in `texts`
    std::map<ThreadKey, Samples> samples;  // of a trace; the nodes are in stack_frames
    std::uint64_t other_events = 0;        // of kinds without a duration
};

Result<JsonEnd> read(ImportJob& job, Content& content);

}  // namespace flamewire::profile::chrome
