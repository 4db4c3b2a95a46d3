// Assembles the server from its options and runs it.
#pragma once

#include "server/options.h"

namespace flamewire::server {

// Runs until SIGINT or SIGTERM and returns the exit code. If startup fails, it prints one sentence on stderr and
// returns 1.
int run(const Options& options);

}  // namespace flamewire::server
