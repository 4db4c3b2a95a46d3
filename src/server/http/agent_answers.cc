#include "server/http/agent_answers.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <expected>
#include <tuple>

#include "base/json_writer.h"
#include "server/http/parameters.h"
#include "wire/control.h"
#include "wire/frame.h"

namespace flamewire::server {
namespace {

constexpr std::string_view relayed[] = {"ping",    "status",    "list_processes", "verify_pid",
                                        "reprobe", "start",     "stop",           "pause",
                                        "resume",  "configure", "counters",       "configure_metrics"};
constexpr double default_timeout_s = 60, longest_timeout_s = 600;

// Parses a JSON object that may have only these members.
Result<rapidjson::Document> parse_body(const std::string& body, std::initializer_list<std::string_view> members) {
    auto document = wire::parse_object(body);
    if (!document) return fail(ErrorCode::invalid, "the body is not a JSON object: " + document.error().message);
    for (const auto& member : document->GetObject()) {
        const std::string_view name(member.name.GetString(), member.name.GetStringLength());
        if (std::find(members.begin(), members.end(), name) == members.end())
            return fail(ErrorCode::invalid, fmt::format("unknown member {:.60}", name));
    }
    return std::move(*document);
}

Result<std::pair<std::string, std::uint16_t>> checked(std::string host, std::uint64_t port) {
    const bool odd = std::ranges::any_of(host, [](unsigned char c) { return c <= ' ' || c == 0x7f || c == '/'; });
    if (host.empty() || host.size() > 255 || odd)
        return fail(ErrorCode::invalid, "host is required: a name or an IP address");
    if (port == 0 || port > 65535) return fail(ErrorCode::invalid, "port must be between 1 and 65535");
    return std::pair(std::move(host), static_cast<std::uint16_t>(port));
}

// host and port from a request body.
Result<std::pair<std::string, std::uint16_t>> address_of(const rapidjson::Document& body) {
    std::uint64_t port = 9999;
    if (const auto member = body.FindMember("port"); member != body.MemberEnd())
        port = member->value.IsUint() ? member->value.GetUint() : 0;
    return checked(wire::text_member(body, "host"), port);
}

// host and port from a query.
Result<std::pair<std::string, std::uint16_t>> address_of(const Request& request) {
    std::uint64_t port = 9999;
    if (const std::string_view text = request.parameter("port"); !text.empty()) port = TRY(parse_integer("port", text));
    return checked(std::string(request.parameter("host")), port);
}

// An agent to dial, from a request body.
struct RequestedEvents {
    std::string host;
    std::uint16_t port = 0;
    std::optional<secure::PairingKey> key;  // its pairing code, if given
};
Result<RequestedEvents> wanted_agent(const Request& request) {
    const auto body = TRY(parse_body(request.body, {"host", "port", "pair"}));
    RequestedEvents wanted;
    std::tie(wanted.host, wanted.port) = TRY(address_of(body));
    if (const auto pair = body.FindMember("pair"); pair != body.MemberEnd() && !pair->value.IsString())
        return fail(ErrorCode::invalid, "pair must be the pairing code, a string");
    if (const std::string code = wire::text_member(body, "pair"); !code.empty())
        wanted.key = TRY(secure::parse_pairing_code(code));
    return wanted;
}

// Logs which client ran which command on which target.
void log_command(const Request& request, const AgentInfo& agent, std::string_view name, const rapidjson::Value& args) {
    spdlog::info("command of {}: {} {:.1000} to agent {} ({})", request.remote, name, to_json(args), agent.id,
                 agent.address);
}

void write_dial(JsonWriter& json, const DialInfo& dial) {
    static constexpr std::string_view states[] = {"connecting", "waiting", "connected"};
    json.object();
    json.member("host", dial.host);
    json.member("port", dial.port);
    json.member("state", states[static_cast<std::size_t>(dial.state)]);
    json.member("agent", dial.agent);
    json.member("problem", dial.problem);
    json.member("attempts", dial.attempts);
    json.member("next_in_ms", dial.next_in_ms);
    json.end_object();
}

// Parses the address to dial, stores its pairing code if given, and continues.
void prepare_dial(const AgentCalls& calls, const Request& request, const Reply& reply,
                  const std::function<void(const std::string& host, std::uint16_t port)>& go_on) {
    const auto wanted = wanted_agent(request);
    if (!wanted) return reply(error_answer(wanted.error()));
    spdlog::info("{} makes the server connect to {:.255}:{}", request.remote, wire::refusal_text(wanted->host),
                 wanted->port);
    if (!wanted->key) return go_on(wanted->host, wanted->port);
    calls.pair(wanted->host, wanted->port, *wanted->key,
               [reply, go_on, host = wanted->host, port = wanted->port](const Result<bool>& kept) {
                   if (!kept) return reply(error_answer(kept.error()));
                   go_on(host, port);
               });
}

Answer list_of_dials(const AgentCalls& calls) {
    JsonWriter json;
    json.object();
    json.list("dials", calls.dials(), [&](const DialInfo& dial) { write_dial(json, dial); });
    json.end_object();
    return json_answer(json.take());
}

Answer stopped_answer(bool stopped, std::string_view reason, std::string_view session) {
    JsonWriter json;
    json.object();
    json.member("stopped", stopped);
    if (!reason.empty()) json.member("reason", reason);
    if (!session.empty()) json.member("session", session);
    json.end_object();
    return json_answer(json.take());
}

}  // namespace

std::expected<AgentPtr, Answer> requested_agent(const AgentCalls& calls, const Request& request) {
    const std::string_view wanted = request.parameter("agent");
    std::vector<AgentPtr> connected = calls.all();
    std::erase_if(connected, [](const AgentPtr& agent) { return !agent->connected; });
    if (!wanted.empty()) {
        for (const AgentPtr& agent : connected)
            if (agent->id == wanted) return agent;
        return std::unexpected(error_answer(404, "not_found", fmt::format("no agent {:.100} is connected", wanted)));
    }
    if (connected.size() == 1) return connected.front();
    if (connected.empty()) return std::unexpected(error_answer(409, "no_agent", "no agent is connected"));
    std::vector<std::string> ids;
    ids.reserve(connected.size());
    for (const AgentPtr& agent : connected) ids.push_back(agent->id);
    return std::unexpected(
        list_error(409, "several_agents", "several agents are connected: choose one with agent=", "agents", ids));
}

Answer agents_answer(const std::vector<AgentPtr>& agents) {
    JsonWriter json;
    json.object();
    json.list("agents", agents, [&](const AgentPtr& agent) { write_agent(json, *agent); });
    json.end_object();
    return json_answer(json.take());
}

void connect_answer(const AgentCalls& calls, const Request& request, const Reply& reply) {
    prepare_dial(calls, request, reply, [&calls, reply](const std::string& host, std::uint16_t port) {
        calls.connect(host, port, [reply](const Result<AgentInfo>& agent) {
            if (!agent) return reply(error_answer(agent.error()));
            JsonWriter json;
            json.object();
            json.member("ok", true);
            json.key("hello");
            json.raw(agent->hello);
            json.member("addr", agent->address);
            json.member("agent", agent->id);
            json.end_object();
            reply(json_answer(json.take()));
        });
    });
}

void dials_answer(const AgentCalls& calls, const Request& request, const Reply& reply) {
    if (request.method == "POST")
        return prepare_dial(calls, request, reply, [&calls, reply](const std::string& host, std::uint16_t port) {
            const auto begun = calls.keep_dialing(host, port);
            reply(begun ? list_of_dials(calls) : error_answer(begun.error()));
        });
    if (request.method == "DELETE") {
        const auto address = address_of(request);
        if (!address) return reply(error_answer(address.error()));
        if (!calls.cancel_dial(address->first, address->second))
            return reply(error_answer(
                404, "not_found",
                fmt::format("the server is not connecting to {:.255}:{}", address->first, address->second)));
    }
    reply(list_of_dials(calls));
}

void command_answer(const AgentCalls& calls, const Request& request, const Reply& reply) {
    auto body = parse_body(request.body, {"cmd", "args", "timeout"});
    if (!body) return reply(error_answer(body.error()));
    const std::string name = wire::text_member(*body, "cmd");
    if (std::find(std::begin(relayed), std::end(relayed), name) == std::end(relayed))
        return reply(error_answer(400, "validation",
                                  fmt::format("cmd must be one of {}, not \"{:.60}\"", fmt::join(relayed, " "), name)));
    rapidjson::Value args(rapidjson::kObjectType);
    if (const auto member = body->FindMember("args"); member != body->MemberEnd()) {
        if (!member->value.IsObject()) return reply(error_answer(400, "validation", "args must be an object"));
        args = member->value;
    }
    double timeout_s = default_timeout_s;
    if (const auto member = body->FindMember("timeout"); member != body->MemberEnd()) {
        if (!member->value.IsNumber() || !(member->value.GetDouble() > 0) ||
            member->value.GetDouble() > longest_timeout_s)
            return reply(error_answer(400, "validation", "timeout must be a number of seconds between 0 and 600"));
        timeout_s = member->value.GetDouble();
    }
    const auto agent = requested_agent(calls, request);
    if (!agent) return reply(agent.error());
    log_command(request, **agent, name, args);
    calls.command((*agent)->id, name, args, std::chrono::milliseconds(std::llround(std::max(1.0, timeout_s * 1000))),
                  reply);
}

void stop_answer(const AgentCalls& calls, const Request& request, const Reply& reply) {
    const auto found = requested_agent(calls, request);
    if (!found) {
        if (found.error().body.find("\"no_agent\"") != std::string::npos)
            return reply(stopped_answer(false, "no agent is connected", ""));
        return reply(found.error());
    }
    const AgentInfo& agent = **found;
    if (agent.session.empty()) return reply(stopped_answer(false, "nothing is being recorded", ""));
    const rapidjson::Value args(rapidjson::kObjectType);
    log_command(request, agent, "stop", args);
    calls.command(agent.id, "stop", args, std::chrono::seconds(30), [reply, session = agent.session](Answer answer) {
        if (answer.status != 200) return reply(std::move(answer));
        const auto document = wire::parse_object(answer.body);
        const std::string error = document ? wire::text_member(*document, "error") : "the agent's answer is not JSON";
        reply(error.empty() ? stopped_answer(true, "", session) : stopped_answer(false, error, ""));
    });
}

}  // namespace flamewire::server
