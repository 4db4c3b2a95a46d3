// The whole server put together, from options to the end of the run.
#pragma once

#include "server/options.h"

namespace flamewire::server {

// Runs until SIGINT or SIGTERM; the answer is the exit code. What cannot start says one sentence on stderr and
// answers 1.
int run(const Options& options);

}  // namespace flamewire::server
