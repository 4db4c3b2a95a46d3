#include "server/http/event_stream.h"

namespace flamewire::server {
namespace {

constexpr std::size_t max_told = 256;

void write_event_types(JsonWriter& json, const SessionInfo& info) {
    json.list("event_types", info.events, [&](const EventInfo& event) { json.text(event.name); });
}

}  // namespace

void append_event(std::string& out, std::string_view name, std::string_view json) {
    out.append("event: ").append(name).append("\ndata: ").append(json).append("\n\n");
}

void EventMarks::render_session(std::string& out, const SessionInfo& info) {
    if (told_.size() > max_told) told_.clear();
    Told& told = told_[info.id];
    JsonWriter types;
    types.object();
    types.member("session", info.id);
    write_event_types(types, info);
    types.end_object();
    if (std::string text = types.take(); text != told.event_types) {
        append_event(out, "event_types", text);
        told.event_types = std::move(text);
    }
    JsonWriter version;
    version.object();
    version.member("session", info.id);
    version.member("data_version", info.data_version);
    version.member("total_samples", info.samples);
    version.member("chunk_count", info.batches);
    write_event_types(version, info);
    version.member("newest_ns", info.newest_ns);
    write_reading(version, info.reading);
    version.end_object();
    append_event(out, "data_version", version.take());

    if (info.health_version != told.health_version) {
        told.health_version = info.health_version;
        JsonWriter health;
        health.object();
        health.member("session", info.id);
        health.member("health_version", info.health_version);
        health.end_object();
        append_event(out, "metrics", health.take());
    }

    JsonWriter losses;
    losses.object();
    losses.member("session", info.id);
    losses.list("losses", info.losses, [&](const LossInfo& loss) { write_loss(losses, loss); });
    losses.member("lost", info.lost);
    losses.end_object();
    if (std::string text = losses.take(); text != told.losses) {
        if (!info.losses.empty() || !told.losses.empty()) append_event(out, "loss", text);
        told.losses = std::move(text);
    }
}

std::string EventMarks::render(const State& state) {
    std::string out;
    if (std::exchange(status_, false)) append_event(out, "status", state.status());
    if (std::exchange(list_, false)) append_event(out, "sessions", "{}");
    for (const std::string& id : std::exchange(agents_, {})) {
        const auto agent = state.agent(id);
        if (!agent) continue;
        JsonWriter json;
        write_agent(json, *agent);
        append_event(out, "agent", json.take());
    }
    for (const std::string& id : std::exchange(sessions_, {}))
        if (const auto info = state.session(id)) render_session(out, *info);
    return out;
}

}  // namespace flamewire::server
