#include "server/http/event_stream.h"

#include "server/limits.h"

namespace flamewire::server {
namespace {

// Limit for sessions and agents with cached state. Above it, everything is dropped and sent again.
constexpr std::size_t most_remembered = 1024;
// Limits of one write to a reader.
constexpr std::size_t most_of_sessions = std::size_t{64} << 10, most_of_agents = std::size_t{32} << 10;

void write_event_types(JsonWriter& json, const SessionInfo& info) {
    json.list("event_types", info.events, [&](const EventInfo& event) { json.text(event.name); });
}

template <class Members>
std::string event_of(std::string_view name, const SessionInfo& info, Members members) {
    JsonWriter json;
    json.object();
    json.member("session", info.id);
    members(json);
    json.end_object();
    std::string text;
    append_event(text, name, json.take());
    return text;
}

}  // namespace

void append_event(std::string& out, std::string_view name, std::string_view json) {
    out.append("event: ").append(name).append("\ndata: ").append(json).append("\n\n");
}

void EventTexts::session_changed(const std::string& id) {
    if (const auto known = sessions_.find(id); known != sessions_.end()) known->second.changed = true;
}

const std::string& EventTexts::status() {
    if (status_.empty()) append_event(status_, "status", state_.status());
    return status_;
}

const std::string& EventTexts::agent(const std::string& id) {
    // A hello can be long, so keep no more texts than there can be agents.
    if (agents_.size() >= limits::agent_connections + limits::gone_agents && !agents_.contains(id)) agents_.clear();
    std::string& text = agents_[id];
    if (!text.empty()) return text;
    if (const AgentPtr agent = state_.agent(id)) {
        JsonWriter json;
        write_agent(json, *agent);
        append_event(text, "agent", json.take());
        return text;
    }
    agents_.erase(id);
    static const std::string none;
    return none;
}

const EventTexts::OfSession* EventTexts::session(const std::string& id) {
    if (sessions_.size() >= most_remembered && !sessions_.contains(id)) sessions_.clear();
    OfSession& texts = sessions_[id];
    if (!texts.changed) return &texts;
    if (const auto info = state_.session(id)) {
        write(texts, *info);
        return &texts;
    }
    sessions_.erase(id);
    return nullptr;
}

void EventTexts::write(OfSession& texts, const SessionInfo& info) {
    texts.changed = false;
    std::string types = event_of("event_types", info, [&](JsonWriter& json) { write_event_types(json, info); });
    if (types != texts.types) {
        texts.types = std::move(types);
        texts.types_number = ++number_;
    }
    texts.version = event_of("data_version", info, [&](JsonWriter& json) {
        json.member("data_version", info.data_version);
        json.member("total_samples", info.samples);
        json.member("chunk_count", info.batches);
        write_event_types(json, info);
        json.member("newest_ns", info.newest_ns);
        write_reading(json, info.reading);
    });
    if (info.health_version != texts.health_number) {
        texts.health_number = info.health_version;
        texts.health =
            event_of("metrics", info, [&](JsonWriter& json) { json.member("health_version", info.health_version); });
    }
    std::string losses = event_of("loss", info, [&](JsonWriter& json) {
        json.list("losses", info.losses, [&](const LossInfo& loss) { write_loss(json, loss); });
        json.member("lost", info.lost);
    });
    // Send an empty list of losses only if a nonempty one was sent before.
    if (losses != texts.losses) {
        if (!info.losses.empty() || texts.losses_number != 0) texts.losses_number = ++number_;
        texts.losses = std::move(losses);
    }
}

// Continues after the last one that was sent, so that no item waits forever when there are always more.
template <class Send>
void EventMarks::take(Marked& marked, std::string& last, const std::string& out, std::size_t most, Send send) {
    while (!marked.empty() && out.size() < most) {
        auto next = marked.upper_bound(last);
        if (next == marked.end()) next = marked.begin();
        last = *next;
        marked.erase(next);
        send(last);
    }
}

std::string EventMarks::render(EventTexts& texts) {
    std::string out;
    if (std::exchange(list_, false)) append_event(out, "sessions", "{}");
    if (sent_.size() > most_remembered) sent_.clear();
    take(sessions_, last_session_, out, most_of_sessions, [&](const std::string& id) {
        const EventTexts::OfSession* session = texts.session(id);
        if (session == nullptr) return;
        Sent& sent = sent_[id];
        if (std::exchange(sent.types, session->types_number) != session->types_number) out += session->types;
        out += session->version;
        if (std::exchange(sent.health, session->health_number) != session->health_number) out += session->health;
        if (std::exchange(sent.losses, session->losses_number) != session->losses_number) out += session->losses;
    });
    take(agents_, last_agent_, out, out.size() + most_of_agents,
         [&](const std::string& id) { out += texts.agent(id); });
    if (std::exchange(status_, false)) out += texts.status();
    return out;
}

}  // namespace flamewire::server
