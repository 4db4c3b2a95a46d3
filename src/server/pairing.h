// The pairing keys on the command line: --list-keys, --new-key, --withdraw-key, --pair-agent.
#pragma once

#include <string>

#include "base/result.h"
#include "server/options.h"

namespace flamewire::server {

std::string keys_path(const std::string& data_dir);

// Carries out options.pairing and prints the result. It works while a server runs; the server reloads the keys within a
// second.
Result<bool> change_keys(const Options& options);

}  // namespace flamewire::server
