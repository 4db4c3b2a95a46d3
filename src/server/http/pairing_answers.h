// /api/pairing: the keys by which agents and this server know each other. docs/openapi.yaml has its shape.
#pragma once

#include <string>
#include <vector>

#include "server/http/request.h"
#include "server/link/agent_info.h"
#include "server/link/key_ring.h"

namespace flamewire::server {

// `target_command`: the line for a target, which the code is added to. Reads and writes the keys' file.
Answer pairing_answer(KeyRing& keys, const std::vector<AgentPtr>& agents, const std::string& target_command,
                      const Request& request);

}  // namespace flamewire::server
