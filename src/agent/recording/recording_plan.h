// What a recording samples, and where its input comes from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/options.h"
#include "agent/perf/event_set_options.h"
#include "agent/perf/kernel.h"
#include "agent/recording/requested_events.h"
#include "base/system.h"

namespace flamewire::agent {

struct RecordingPlan {
    std::string target;  // description: "pid 4242 (demo)"
    std::vector<std::uint32_t> pids;
    Scope scope;  // wide: instead of pids; the recorder chooses its mode
    Settings settings;
    RequestedEvents wanted;  // settings.events and settings.stat, parsed
    // The only pid is a child that waits to exec. Its events start at exec, or delay_ms after BeginDelay. Its owner
    // reports its exit.
    bool launched = false;
    std::string program;  // with `launched`: the file that it will execute
    std::uint32_t delay_ms = 0;
    std::uint32_t ring_pages = 0;
    bool follows_name = false;  // processes may be added, so it does not end when the current ones exit
};

// The sources of the sampler's input. Both must outlive the recording.
struct Environment {
    System* system = nullptr;  // null: the machine
    const Kernel* kernel = &real_kernel();
    void (*boost_priority)(bool boost) = [](bool) {};  // of the calling thread
};

// What is recorded from now on: a description, and processes or a scope.
struct RecordingTarget {
    std::string name;
    std::vector<std::uint32_t> pids;
    Scope scope = {};
};

}  // namespace flamewire::agent
