// Relays commands to agents. Each command ends once: with its reply, at its deadline, or when its agent disconnects.
// Everything runs on the io thread.
#pragma once

#include <rapidjson/document.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "server/link/agent_registry.h"

namespace flamewire::server {

// The result of a relayed command.
struct CommandAnswer {
    enum class Kind { reply, unreachable, timeout };
    Kind kind = Kind::unreachable;
    std::string text;  // reply: JSON, verbatim; otherwise one sentence
    bool ok = false;   // the `ok` of the reply
};

class CommandRelay {
public:
    // Translates a command for an agent of PerfLens and sends it.
    using SendPerfLens = std::function<void(const std::shared_ptr<AgentPeer>&, const std::string& id,
                                            const std::string& name, const rapidjson::Value& args)>;

    CommandRelay(const AgentRegistry& registry, SendPerfLens send_perflens)
        : registry_(registry), send_perflens_(std::move(send_perflens)) {}

    // Returns the id that the command was sent with. Empty: it was not sent.
    std::string send(const std::string& agent_id, const std::string& name, const rapidjson::Value& args,
                     std::chrono::milliseconds timeout, std::function<void(CommandAnswer)> answer);
    // The name of a command that waits for a reply of this agent. Nothing if there is none.
    [[nodiscard]] std::optional<std::string> pending(const std::string& id, const std::string& agent_id) const;
    void finish(const std::string& id, CommandAnswer answer);
    // Ends a command without an answer. False if it does not wait any more.
    bool discard(const std::string& id) { return commands_.erase(id) != 0; }
    // Ends the commands of an agent that disconnected.
    void agent_disconnected(const std::string& agent_id);
    // Ends the commands whose deadline is over.
    void end_late();

private:
    using Clock = std::chrono::steady_clock;
    struct Pending {
        std::string agent, name;
        std::function<void(CommandAnswer)> answer;
        Clock::time_point deadline;
    };
    template <class Condition>
    void finish_if(Condition condition, const CommandAnswer& answer);

    const AgentRegistry& registry_;
    const SendPerfLens send_perflens_;
    std::map<std::string, Pending> commands_;  // by id
};

}  // namespace flamewire::server
