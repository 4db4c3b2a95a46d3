// The events of /api/stream. There are no queues: each reader has marks for what changed. The marks become events of
// the newest state when the reader can take them, so a stalled reader costs nothing and then gets only the newest
// state. Use everything here on the io thread.
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

// The text of each event. It is generated once for all readers, when the first one needs it after a change.
class EventTexts {
public:
    // The source of the newest state.
    struct State {
        std::function<std::string()> status;  // JSON
        std::function<std::optional<SessionInfo>(const std::string& id)> session;
        std::function<AgentPtr(const std::string& id)> agent;        // null: no such agent
        std::function<std::vector<std::string>()> live{}, agents{};  // ids that a new reader is sent
    };
    // Complete events. The numbers identify which of them a reader already has; 0: no such event.
    struct OfSession {
        std::string types, version, health, losses;
        std::uint64_t types_number = 0, health_number = 0, losses_number = 0;
        bool changed = true;
    };

    explicit EventTexts(State state) : state_(std::move(state)) {}
    [[nodiscard]] const State& state() const { return state_; }

    void status_changed() { status_.clear(); }
    void session_changed(const std::string& id);
    void agent_changed(const std::string& id) { agents_.erase(id); }

    const std::string& status();
    const std::string& agent(const std::string& id);  // empty: no such agent
    const OfSession* session(const std::string& id);  // null: no such session

private:
    void write(OfSession& texts, const SessionInfo& info);

    const State state_;
    std::string status_;
    std::map<std::string, std::string> agents_;
    std::map<std::string, OfSession> sessions_;
    std::uint64_t number_ = 0;  // of the last text that has one
};

// What one reader still has to be sent.
class EventMarks {
public:
    // Empty: all sessions.
    explicit EventMarks(std::string session) : only_(std::move(session)) {}

    void status() { status_ = true; }
    void sessions() { list_ = true; }
    void agent(const std::string& id) { agents_.insert(id); }
    void session(const std::string& id) {
        if (only_.empty() || only_ == id) sessions_.insert(id);
    }
    [[nodiscard]] bool any() const { return status_ || list_ || !agents_.empty() || !sessions_.empty(); }

    // The events for what is marked, up to the size of one write, in turn. The rest stays marked. Event types and
    // losses of a session are not repeated if the reader already has them.
    std::string render(EventTexts& texts);

private:
    struct Sent {
        std::uint64_t types = 0, health = 0, losses = 0;
    };

    using Marked = std::set<std::string>;
    template <class Send>
    static void take(Marked& marked, std::string& last, const std::string& out, std::size_t most, Send send);

    const std::string only_;
    bool status_ = false, list_ = false;
    Marked agents_, sessions_;
    std::string last_agent_, last_session_;  // that were sent
    std::map<std::string, Sent> sent_;
};

// "event: NAME\ndata: JSON\n\n"
void append_event(std::string& out, std::string_view name, std::string_view json);

}  // namespace flamewire::server
