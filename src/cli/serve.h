// Runs the server for the command line.
#pragma once

#include <string>

#include "base/result.h"

namespace flamewire::cli {

// Serves the data directory, or only the session file if it is outside of that directory, until the server is stopped.
// Prints the address of the session.
Result<int> serve_session(const std::string& path, const std::string& data_dir);

}  // namespace flamewire::cli
