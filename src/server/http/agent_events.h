// Lists the events of an agent's machine. Runs on the io thread and never blocks.
#pragma once

#include "server/http/agent_answers.h"
#include "server/http/request.h"

namespace flamewire::server {

// `calls` must outlive the reply.
void agent_events_answer(const AgentCalls& calls, const Request& request, const Reply& reply);

}  // namespace flamewire::server
