// Decodes the inputs of a recording (agent/recording/recording_encode.h). invalid: the bytes are cut off, contain a
// list length above their own size, or continue after the last field.
#pragma once

#include <string_view>

#include "agent/recording/recorder_command.h"
#include "base/result.h"

namespace flamewire::replay {

Result<agent::RecordingPlan> decode_plan(std::string_view text);
Result<agent::Capabilities> decode_capabilities(std::string_view text);
Result<agent::Machine> decode_machine(std::string_view text);
Result<agent::RecorderCommand> decode_command(std::string_view text);

}  // namespace flamewire::replay
