// The pairing keys on the command line: --list-keys, --new-key, --withdraw-key, --pair-agent.
#pragma once

#include <string>

#include "base/result.h"
#include "server/options.h"

namespace flamewire::server {

std::string keys_path(const std::string& data_dir);

// Does what options.pairing says, also beside a running server, which sees it within a second; prints the answer.
Result<bool> change_keys(const Options& options);

}  // namespace flamewire::server
