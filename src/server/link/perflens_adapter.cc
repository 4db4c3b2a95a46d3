#include "server/link/perflens_adapter.h"

#include <asio/post.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "server/link/perflens_messages.h"
#include "wire/control.h"

namespace flamewire::server {
namespace {

// After a stop, the last texts may still be on their way.
constexpr std::chrono::seconds last_texts{3};
constexpr std::chrono::seconds status_time{30};

std::string host_of(const std::string& address) { return address.substr(0, address.rfind(':')); }

}  // namespace

std::optional<std::string> PerfLensAdapter::accept(AgentPeer& peer, const rapidjson::Document& hello) {
    if (!policy_.accept) {
        peer.connection->close(
            "it is a PerfLens agent: start the server with --accept-perflens to take it, or run flamewire-agent there");
        return {};
    }
    peer.perflens = std::make_shared<AgentPeer::PerfLens>();
    peer.perflens->metadata = recording_of_perflens(hello, host_of(peer.connection->address()));
    peer.perflens->recording.set_metadata(peer.perflens->metadata);
    return hello_of_perflens(hello);
}

void PerfLensAdapter::begin(const AgentPeer& peer, const rapidjson::Document& hello) {
    if (policy_.token.empty()) {
        if (wire::text_member(hello, "auth") == "token")
            spdlog::warn("agent {}: it requires its pairing code: give --perflens-token CODE", peer.agent_id);
        return request_status(peer);
    }
    peer.perflens->auth_id = "pairing";
    peer.connection->send(wire::Flag::command, auth_for_perflens("pairing", policy_.token));
}

bool PerfLensAdapter::handle_pairing_reply(const AgentPeer& peer, const rapidjson::Document& reply) {
    if (wire::text_member(reply, "id") != peer.perflens->auth_id) return false;
    peer.perflens->auth_id.clear();
    const auto ok = reply.FindMember("ok");
    const std::string error = wire::text_member(reply, "error");
    // Agents before 0.10 do not have this command and require no code.
    if ((ok == reply.MemberEnd() || !ok->value.IsBool() || !ok->value.GetBool()) &&
        !error.starts_with("unknown command"))
        peer.connection->close(fmt::format(
            "it refused the pairing code ({:.100}): give the one that it printed with --perflens-token CODE", error));
    else
        request_status(peer);
    return true;
}

void PerfLensAdapter::request_status(const AgentPeer& peer) {
    const rapidjson::Value none(rapidjson::kObjectType);
    commands_.send(peer.agent_id, "status", none, status_time, [](const CommandAnswer&) {});
}

void PerfLensAdapter::send_command(const PeerPtr& peer, const std::string& id, const std::string& name,
                                   const rapidjson::Value& args) {
    const Result<std::string> translated = command_for_perflens(id, name, args);
    if (translated) {
        if (name == "start") pipeline_.end_recording(peer, "stopped");
        return peer->connection->send(wire::Flag::command, *translated);
    }
    // Post the answer: the caller does not have the command's id yet.
    asio::post(threads_.io, [this, id, error = translated.error().message] {
        commands_.finish(id, {CommandAnswer::Kind::reply, wire::encode_error_reply(id, error), false});
    });
}

void PerfLensAdapter::translate_reply(const AgentPeer& peer, const std::string& command,
                                      const rapidjson::Document& reply, CommandAnswer& answer) {
    answer.text = reply_of_perflens(command, reply);
    if (!answer.ok) return;
    if (command == "stop") peer.perflens->end_at = AgentPeer::Clock::now() + last_texts;
    if (command != "start" && command != "status") return;
    wire::Recording& metadata = peer.perflens->metadata;
    const std::uint64_t pid = wire::number_member(reply, "pid");
    if (pid != 0) {
        metadata.pids = {static_cast<std::uint32_t>(pid)};
        metadata.target = fmt::format("pid {}", pid);
    }
    metadata.frequency_hz = static_cast<std::uint32_t>(wire::number_member(reply, "frequency"));
    metadata.interval_ms = static_cast<std::uint32_t>(wire::number_member(reply, "duration") * 1000);
    if (command == "start") metadata.unwind = wire::text_member(reply, "callgraph");
    peer.perflens->recording.set_metadata(metadata);
}

void PerfLensAdapter::end_stopped(const PeerPtr& peer) {
    if (peer->perflens && peer->perflens->end_at != AgentPeer::Clock::time_point{} &&
        AgentPeer::Clock::now() >= peer->perflens->end_at)
        pipeline_.end_recording(peer, "stopped");
}

}  // namespace flamewire::server
