// The sentence and the remedy for each error with which the kernel refuses an event. Pure.
#pragma once

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace flamewire::agent {

inline constexpr std::string_view remedy_paranoid = "sysctl -w kernel.perf_event_paranoid=1";

// No file descriptor is left for another event.
constexpr bool out_of_files(int error) { return error == EMFILE || error == ENFILE; }

struct OpenFailure {
    int error = 0;           // errno
    std::string_view event;  // its name; "": any event
    std::uint32_t pid = 0;   // the target; 0: our own thread
    int paranoid = 0;
    bool whole_cpu = false;  // the event was for all that runs on a CPU, …
    bool cgroup = false;     // … or in a control group
};

// One sentence without a remedy, and a command that helps ("" if none does).
struct Explanation {
    ErrorCode code = ErrorCode::io;
    std::string text;
    std::string remedy;
};
Explanation explain_open_failure(const OpenFailure& failure);

// Both in one Error: "<text>. Try: <remedy>".
Error open_error(const OpenFailure& failure);

}  // namespace flamewire::agent
