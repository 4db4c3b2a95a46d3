// /api/pairing: the keys with which agents and this server authenticate each other. docs/openapi.yaml has the format.
#pragma once

#include <string>
#include <vector>

#include "server/http/request.h"
#include "server/link/agent_info.h"
#include "server/link/key_ring.h"

namespace flamewire::server {

// `target_command`: the command line for a target, to which the code is appended. Reads and writes the key file.
Answer pairing_answer(KeyRing& keys, const std::vector<AgentPtr>& agents, const std::string& target_command,
                      const Request& request);

}  // namespace flamewire::server
