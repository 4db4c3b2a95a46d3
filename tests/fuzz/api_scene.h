// A server without sockets for targets that send requests, and checks that apply to all answers.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "../unit/server/desk.h"
#include "wire/control.h"

namespace flamewire::fuzz {

// Reused until a request changes something, so that each input always has the same effect.
struct Scene {
    test::Desk desk{""};
    test::RecordingScene recorded;
    std::shared_ptr<server::Session> session = desk.record(recorded);

    Scene() {
        server::AgentInfo agent;
        agent.id = "board";
        agent.connected = true;
        desk.agents = {std::make_shared<const server::AgentInfo>(agent)};
        const std::string at = R"("mono_ns":5000000000)";
        for (const std::string& frame :
             {R"({"type":"system",)" + at + R"(,"cpu_percent":12.5})",
              R"({"type":"threads",)" + at + R"(,"pid":42,"threads":[{"tid":43,"state":"S"}]})"})
            (void)session->ingest(wire::Flag::metrics, frame, test::arrival);
    }
};

// SESSION stands for the id of the recorded session.
inline std::string with_session(std::string_view text, const std::string& id) {
    constexpr std::string_view placeholder = "SESSION";
    std::string result(text);
    for (std::size_t at = 0; (at = result.find(placeholder, at)) != std::string::npos; at += id.size())
        result.replace(at, placeholder.size(), id);
    return result;
}

// An answer must have a status, and must be valid if it is JSON.
inline void check(const server::Answer& answer) {
    if (answer.status < 200 || answer.status > 599) std::abort();
    if (answer.content_type != "application/json" || answer.file || !answer.fixed_body.empty()) return;
    // Wrapped in an object, because some answers are lists.
    const auto json = wire::parse_object(R"({"answer":)" + answer.body + "}");
    if (!json) std::abort();
    const auto& value = (*json)["answer"];
    if (answer.status >= 400 && !(value.IsObject() && value.HasMember("error"))) std::abort();
}

// Handles a request as the server does after admitting it.
inline void answer(std::unique_ptr<Scene>& scene, const server::Request& request) {
    using server::Api;
    Api& api = scene->desk.api;
    switch (Api::route_of(request)) {
        case Api::Route::agent: api.agent_request(request, [](const server::Answer& answer) { check(answer); }); break;
        case Api::Route::stream:
        case Api::Route::file: return;
        case Api::Route::session: (void)api.needs(request); [[fallthrough]];
        default: check(api.answer(request));
    }
    if (request.method != "GET" && request.method != "HEAD") scene = std::make_unique<Scene>();
}

}  // namespace flamewire::fuzz
