// Endpoints about agents. Those that dial an agent or wait for its reply run on the io thread and never block.
#pragma once

#include <rapidjson/document.h>

#include <chrono>
#include <cstdint>
#include <expected>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "secure/pairing_key.h"
#include "server/http/request.h"
#include "server/link/agent_info.h"
#include "server/link/dial_info.h"

namespace flamewire::server {

using Reply = std::function<void(Answer)>;

// What the endpoints need of the agents. Tests provide their own.
struct AgentCalls {
    std::function<std::vector<AgentPtr>()> all;
    std::function<void(const std::string& host, std::uint16_t port, std::function<void(Result<AgentInfo>)>)> connect;
    std::function<void(const std::string& agent, const std::string& command, const rapidjson::Value& args,
                       std::chrono::milliseconds timeout, Reply)>
        command;
    std::function<Result<bool>(const std::string& host, std::uint16_t port)> keep_dialing{};
    // Stores the pairing code of a listening agent, then calls back on the io thread.
    std::function<void(const std::string& host, std::uint16_t port, const secure::PairingKey&,
                       std::function<void(Result<bool>)>)>
        pair{};
    std::function<bool(const std::string& host, std::uint16_t port)> cancel_dial{};
    std::function<std::vector<DialInfo>()> dials{};
    std::function<std::vector<TurnedAway>()> turned_away{};
};

// The connected agent that the parameter `agent` selects, or the only one; otherwise an error.
std::expected<AgentPtr, Answer> requested_agent(const AgentCalls& calls, const Request& request);

Answer agents_answer(const std::vector<AgentPtr>& agents);

// `calls` must outlive the reply.
void connect_answer(const AgentCalls& calls, const Request& request, const Reply& reply);
// POST begins dialing, DELETE ends it. Every answer is the resulting list.
void dials_answer(const AgentCalls& calls, const Request& request, const Reply& reply);
void command_answer(const AgentCalls& calls, const Request& request, const Reply& reply);
void stop_answer(const AgentCalls& calls, const Request& request, const Reply& reply);

}  // namespace flamewire::server
