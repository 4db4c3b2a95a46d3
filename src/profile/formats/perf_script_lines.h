// Parses single lines of the text of `perf script`. Does not allocate.
#pragma once

#include <cstdint>
#include <string_view>

namespace flamewire::profile {

// The first line of a sample. Members are views into the line.
struct PerfSampleLine {
    std::string_view comm, event;
    std::uint32_t pid = 0, tid = 0, cpu = 0;
    std::uint64_t time_ns = 0, period = 0;
    bool has_time = false, has_period = false;
    std::string_view rest;  // after the event: a frame, or the fields of a tracepoint
};
// Parses a line with perf's default fields. False if it is not the first line of a sample.
bool parse_perf_sample(std::string_view line, PerfSampleLine& into);

// One frame. Members are views into the line.
struct PerfFrameLine {
    std::uint64_t address = 0;
    std::string_view symbol, module;  // symbol without its offset; empty: unknown
    bool inlined = false;
};
bool parse_perf_frame(std::string_view line, PerfFrameLine& into);

}  // namespace flamewire::profile
