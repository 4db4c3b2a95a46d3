// What the agent logs about its recordings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/commands.h"
#include "agent/control/launch.h"
#include "agent/options.h"
#include "agent/recording/recorder.h"

namespace flamewire::agent {

std::string command_text(const std::vector<std::string>& words);

void log_start(const Running& running);
void log_change(const Running& running);
// Also prints the table of counters, if it is wanted. `file_bytes`: size of the session file, if there is one.
// `command`: the launched command, or null.
void log_end(const Recorder& recorder, const Ended& ended, const Options& options,
             std::optional<std::uint64_t> file_bytes, const LaunchedCommand* command);

}  // namespace flamewire::agent
