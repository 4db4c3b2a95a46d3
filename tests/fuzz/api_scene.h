// A server without sockets for the targets that send it requests, and what holds for every answer.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "../unit/server/desk.h"
#include "wire/control.h"

namespace flamewire::fuzz {

// Until a request changes something, so that each input does the same whenever it is tried.
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
            (void)session->take(wire::Flag::metrics, frame, test::arrival);
    }
};

// SESSION stands for the id of the session that there is.
inline std::string with_session(std::string_view text, const std::string& id) {
    constexpr std::string_view placeholder = "SESSION";
    std::string result(text);
    for (std::size_t at = 0; (at = result.find(placeholder, at)) != std::string::npos; at += id.size())
        result.replace(at, placeholder.size(), id);
    return result;
}

// It has a status and, as JSON, is valid.
inline void check(const server::Answer& answer) {
    if (answer.status < 200 || answer.status > 599) std::abort();
    if (answer.content_type != "application/json" || answer.file || !answer.fixed_body.empty()) return;
    // Some are lists.
    const auto json = wire::parse_object(R"({"answer":)" + answer.body + "}");
    if (!json) std::abort();
    const auto& value = (*json)["answer"];
    if (answer.status >= 400 && !(value.IsObject() && value.HasMember("error"))) std::abort();
}

// As the server does with a request that it admits.
inline void answer(std::unique_ptr<Scene>& scene, const server::Request& request) {
    using server::Api;
    Api& api = scene->desk.api;
    switch (Api::way_of(request)) {
        case Api::Way::agent:
            api.agent_request(request, [](const server::Answer& answer) { check(answer); });
            break;
        case Api::Way::stream:
        case Api::Way::file:
            return;
        case Api::Way::session:
            (void)api.needs(request);
            [[fallthrough]];
        default:
            check(api.answer(request));
    }
    if (request.method != "GET" && request.method != "HEAD") scene = std::make_unique<Scene>();
}

}  // namespace flamewire::fuzz
