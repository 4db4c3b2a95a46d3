// GET /api/status: this run of the server, its agents and its live sessions.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "server/http/agent_answers.h"
#include "server/http/html_answer.h"
#include "server/http/request.h"
#include "server/session/catalog.h"
#include "server/session/prune.h"
#include "server/source/browse.h"

namespace flamewire::server {

// Facts of this run.
struct ServerFacts {
    std::string agent_bind;
    std::uint16_t agent_port = 0;
    std::string http_url, target_command, data_dir;
    bool insecure = false;        // accept agents without encryption and pairing code
    bool token_required = false;  // a browser must log in, and can log out
    PageBytes page;               // for exports
    std::vector<BrowseRoot> browse_roots;
    RetentionRules keep;
    std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
};

Answer status_answer(const ServerFacts& facts, Catalog& catalog, const AgentCalls& calls);

}  // namespace flamewire::server
