#include "server/http/event_stream.h"

namespace flamewire::server {
namespace {

// Sessions and agents of which something is remembered. Above it all is forgotten, and told anew.
constexpr std::size_t most_remembered = 1024;

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
    if (agents_.size() >= most_remembered) agents_.clear();
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
    // That there is none is news only when there was one.
    if (losses != texts.losses) {
        if (!info.losses.empty() || texts.losses_number != 0) texts.losses_number = ++number_;
        texts.losses = std::move(losses);
    }
}

std::string EventMarks::render(EventTexts& texts) {
    std::string out;
    if (std::exchange(status_, false)) out += texts.status();
    if (std::exchange(list_, false)) append_event(out, "sessions", "{}");
    for (const std::string& id : std::exchange(agents_, {})) out += texts.agent(id);
    if (told_.size() > most_remembered) told_.clear();
    for (const std::string& id : std::exchange(sessions_, {})) {
        const EventTexts::OfSession* session = texts.session(id);
        if (session == nullptr) continue;
        Told& told = told_[id];
        if (std::exchange(told.types, session->types_number) != session->types_number) out += session->types;
        out += session->version;
        if (std::exchange(told.health, session->health_number) != session->health_number) out += session->health;
        if (std::exchange(told.losses, session->losses_number) != session->losses_number) out += session->losses;
    }
    return out;
}

}  // namespace flamewire::server
