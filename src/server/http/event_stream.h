// What one reader of /api/stream still has to be told. Not a queue: marks that something changed, rendered into events
// from the newest state when the reader can take them. So a reader that stalls costs nothing and gets only the newest
// when it reads again.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "server/link/agent_info.h"
#include "server/session/session_info.h"

namespace flamewire::server {

class EventMarks {
public:
    // Where the newest state comes from.
    struct State {
        std::function<std::string()> status;  // JSON
        std::function<std::optional<SessionInfo>(const std::string& id)> session;
        std::function<std::optional<AgentInfo>(const std::string& id)> agent;
        std::function<std::vector<std::string>()> live, agents;  // what a new reader is told of
    };

    // Empty: all sessions.
    explicit EventMarks(std::string session) : only_(std::move(session)) {}

    void status() { status_ = true; }
    void sessions() { list_ = true; }
    void agent(const std::string& id) { agents_.insert(id); }
    void session(const std::string& id) {
        if (only_.empty() || only_ == id) sessions_.insert(id);
    }
    [[nodiscard]] bool any() const { return status_ || list_ || !agents_.empty() || !sessions_.empty(); }

    // The events for everything marked; nothing is marked afterwards. What a session's reader knows already (event
    // types, losses) is not repeated.
    std::string render(const State& state);

private:
    struct Told {
        std::string event_types, losses;
        std::uint64_t health_version = 0;
    };
    void render_session(std::string& out, const SessionInfo& info);

    const std::string only_;
    bool status_ = false, list_ = false;
    std::set<std::string> agents_, sessions_;
    std::map<std::string, Told> told_;
};

// "event: NAME\ndata: JSON\n\n"
void append_event(std::string& out, std::string_view name, std::string_view json);

}  // namespace flamewire::server
