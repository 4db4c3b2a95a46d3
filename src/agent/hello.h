// Describes this agent and its capabilities, for its hello (without the recording) and for members of its replies.
#pragma once

#include <string>
#include <string_view>

#include "agent/machine.h"
#include "agent/perf/capabilities.h"
#include "base/json_writer.h"
#include "wire/control.h"

namespace flamewire::agent {

wire::Hello make_hello(std::string_view agent_id, const Machine& machine, const Capabilities& capabilities,
                       std::string_view state);

// "platform": {…}
void put_platform(JsonWriter& json, const Machine& machine, const Capabilities& capabilities);
// record_events, stat_only_events, callgraph_method, … as members of the open object.
void put_capabilities(JsonWriter& json, const Capabilities& capabilities);

}  // namespace flamewire::agent
