// The server, run by the command line.
#pragma once

#include <string>

#include "base/result.h"

namespace flamewire::cli {

// Serves the data directory, or the session file alone when it is not of it, until it is ended; the address of the
// session is printed.
Result<int> serve_session(const std::string& path, const std::string& data_dir);

}  // namespace flamewire::cli
