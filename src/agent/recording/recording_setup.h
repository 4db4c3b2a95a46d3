// What a recording samples now, and where. Commands change it, on the sampler thread.
#pragma once

#include "agent/machine.h"
#include "agent/perf/capabilities.h"
#include "agent/recording/recording_plan.h"

namespace flamewire::agent {

struct RecordingSetup {
    RecordingPlan plan;  // with the current target, settings and requested events
    Environment environment;
    Machine machine;
    Capabilities capabilities = {};
    EventChoice choice = {};  // the events that are open
};

}  // namespace flamewire::agent
