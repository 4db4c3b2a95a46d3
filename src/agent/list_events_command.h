// The command list_events, see docs/agent/commands.md.
#pragma once

#include <string>

#include "agent/commands.h"
#include "base/result.h"
#include "wire/control.h"

namespace flamewire::agent {

// Returns the reply.
Result<std::string> list_events(const wire::Command& command, Control& control);

}  // namespace flamewire::agent
