// Encodes the inputs of a recording for a capture. recording_fields.h lists the fields. replay/recording_decode.h
// decodes them.
#pragma once

#include <string>

#include "agent/recording/recorder_command.h"

namespace flamewire::agent {

std::string encode_plan(const RecordingPlan& plan);
std::string encode_capabilities(const Capabilities& capabilities);
std::string encode_machine(const Machine& machine);
// Empty for OpenModule, which does not affect the recording.
std::string encode_command(const RecorderCommand& command);

}  // namespace flamewire::agent
