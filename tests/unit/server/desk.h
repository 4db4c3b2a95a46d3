// The API of a server without sockets, with agents that only record what is sent to them.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "recording.h"
#include "server/http/api.h"
#include "server/session/import_file.h"
#include "symbol/symbolizer.h"

namespace flamewire::test {

using namespace server;

inline Request get(const std::string& target) {
    Request request;
    request.method = "GET";
    auto parsed = parse_target(target).value();
    request.path = std::move(parsed.path);
    request.query = std::move(parsed.query);
    return request;
}

inline Request post(const std::string& target, const std::string& body, const std::string& method = "POST") {
    Request request = get(target);
    request.method = method;
    request.body = body;
    return request;
}

// Everything that an answer depends on.
struct Desk {
    // `browsed`: the root of the folders that the page may list. Empty: only the data folder.
    explicit Desk(std::string browsed = "/") : root(std::move(browsed)) {}

    const std::string root;
    ScratchDirectory data;
    std::unique_ptr<Catalog> catalog = Catalog::open(data.path(), {}).value();
    symbol::Symbolizer symbolizer{symbol::Config{}};
    Symbolization symbols{symbolizer, [](const auto&) {}};
    SourceLookup sources{SourceConfig{data.path(), "", {}}};
    Settings settings{SettingsValues{.source_dir = data.path(), .upload_directory = data.path() + "/given"}};
    UploadStore uploads{data.path() + "/uploads"};
    Imports imports{*catalog, symbols, default_import_memory, [] {}};
    KeyRing keys = KeyRing::open(data.path() + "/pairing-keys").value();
    std::vector<AgentPtr> agents;
    std::string sent, sent_args;
    std::string agent_reply = R"({"id":"1","ok":true})";
    std::vector<DialInfo> dialled;
    Api api{
        {*catalog, symbols, symbolizer, sources, nullptr, settings, uploads, imports, keys, noting_agents(), facts()}};

    [[nodiscard]] ServerFacts facts() const {
        ServerFacts facts;
        facts.browse_roots = browse_roots({root.empty() ? data.path() : root});
        return facts;
    }

    AgentCalls noting_agents() {
        AgentCalls result;
        result.all = [this] { return agents; };
        result.command = [this](const std::string& agent, const std::string& command, const rapidjson::Value& args,
                                std::chrono::milliseconds timeout, const Reply& reply) {
            sent = agent + " " + command + " " + std::to_string(timeout.count());
            sent_args = to_json(args);
            reply(json_answer(agent_reply));
        };
        result.connect = [](const std::string&, std::uint16_t, const std::function<void(Result<AgentInfo>)>& answer) {
            answer(fail(ErrorCode::closed, "not connected"));
        };
        result.keep_dialing = [this](const std::string& host, std::uint16_t port) -> Result<bool> {
            if (dialled.size() == 2) return fail(ErrorCode::busy, "too many");
            dialled.push_back({.host = host, .port = port, .agent = {}, .problem = "no way"});
            return true;
        };
        result.cancel_dial = [this](const std::string& host, std::uint16_t port) {
            return std::erase_if(dialled, [&](const DialInfo& d) { return d.host == host && d.port == port; }) > 0;
        };
        result.dials = [this] { return dialled; };
        result.pair = [](const std::string&, std::uint16_t, const secure::PairingKey&,
                         const std::function<void(Result<bool>)>& done) { done(true); };
        result.turned_away = [] { return std::vector<TurnedAway>(); };
        return result;
    }
    std::shared_ptr<Session> record(RecordingScene& scene) {
        auto session = catalog->create(scene.id(), "demo").value();
        const wire::Frame frame = scene.next();
        session->ingest(frame.flag, frame.payload, 1'800'000'000'000'000'000).value();
        session->status().attach_agent("127.0.0.1:5");
        return session;
    }
    Answer agent_answer(const Request& request) {
        Answer result;
        api.agent_request(request, [&](Answer answer) { result = std::move(answer); });
        return result;
    }
};

}  // namespace flamewire::test
