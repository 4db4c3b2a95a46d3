#include "server/link/command_relay.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "base/hex.h"
#include "server/limits.h"
#include "server/link/agent_peer.h"
#include "wire/control.h"

namespace flamewire::server {
namespace {

std::string random_id() {
    std::array<char, 6> bytes{};
    (void)!::getrandom(bytes.data(), bytes.size(), 0);
    return to_hex(std::string_view(bytes.data(), bytes.size()));
}

}  // namespace

std::string CommandRelay::send(const std::string& agent_id, const std::string& name, const rapidjson::Value& args,
                               std::chrono::milliseconds timeout, std::function<void(CommandAnswer)> answer) {
    const auto* agent = registry_.find(agent_id);
    if (agent == nullptr || !agent->peer) {
        answer({CommandAnswer::Kind::unreachable, "the agent is not connected", false});
        return {};
    }
    const auto waiting =
        std::ranges::count_if(commands_, [&](const auto& pending) { return pending.second.agent == agent_id; });
    if (static_cast<std::size_t>(waiting) >= limits::commands_of_agent) {
        limit_reached(Limit::commands_of_agent);
        answer({CommandAnswer::Kind::unreachable,
                fmt::format("{} commands are already waiting for the agent: try again later", waiting), false});
        return {};
    }
    std::string id = random_id();
    const std::string json = wire::encode_command(id, name, args);
    if (json.size() > wire::max_payload_to_agent) {
        answer({CommandAnswer::Kind::unreachable, "the command is too long", false});
        return {};
    }
    commands_[id] = {agent_id, name, std::move(answer), Clock::now() + timeout};
    if (agent->peer->perflens)
        send_perflens_(agent->peer, id, name, args);
    else
        agent->peer->connection->send(wire::Flag::command, json);
    return id;
}

std::optional<std::string> CommandRelay::pending(const std::string& id, const std::string& agent_id) const {
    const auto found = commands_.find(id);
    if (found == commands_.end() || found->second.agent != agent_id) return {};
    return found->second.name;
}

void CommandRelay::finish(const std::string& id, CommandAnswer answer) {
    const auto pending = commands_.find(id);
    if (pending == commands_.end()) return;
    auto callback = std::move(pending->second.answer);
    commands_.erase(pending);
    callback(std::move(answer));
}

// A callback may send the next command, so collect the ids first.
template <class Condition>
void CommandRelay::finish_if(Condition condition, const CommandAnswer& answer) {
    std::vector<std::string> ids;
    for (const auto& [id, pending] : commands_)
        if (condition(pending)) ids.push_back(id);
    for (const std::string& id : ids) finish(id, answer);
}

void CommandRelay::agent_disconnected(const std::string& agent_id) {
    finish_if([&](const Pending& pending) { return pending.agent == agent_id; },
              {CommandAnswer::Kind::unreachable, "the agent disconnected before it answered", false});
}

void CommandRelay::end_late() {
    finish_if([now = Clock::now()](const Pending& pending) { return pending.deadline <= now; },
              {CommandAnswer::Kind::timeout, "the agent did not answer in time", false});
}

}  // namespace flamewire::server
