// Any bytes as a request of a browser: method and target, a blank line, the body. Every answer has a status and, as JSON,
// is valid. SESSION stands for the id of the session that there is.
#include <spdlog/spdlog.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "../unit/server/desk.h"
#include "wire/control.h"

using namespace flamewire;
using namespace flamewire::server;

namespace {

// Until a request changes something, so that each input does the same whenever it is tried.
struct Scene {
    flamewire::test::Desk desk{""};
    flamewire::test::RecordingScene recorded;
    std::shared_ptr<Session> session = desk.record(recorded);

    Scene() {
        AgentInfo agent;
        agent.id = "board";
        agent.connected = true;
        desk.agents = {std::make_shared<const AgentInfo>(agent)};
        const std::string at = R"("mono_ns":5000000000)";
        for (const std::string& frame :
             {R"({"type":"system",)" + at + R"(,"cpu_percent":12.5})",
              R"({"type":"threads",)" + at + R"(,"pid":42,"threads":[{"tid":43,"state":"S"}]})"})
            (void)session->take(wire::Flag::metrics, frame, flamewire::test::arrival);
    }
};

std::string with_session(std::string_view text, const std::string& id) {
    constexpr std::string_view placeholder = "SESSION";
    std::string result(text);
    for (std::size_t at = 0; (at = result.find(placeholder, at)) != std::string::npos; at += id.size())
        result.replace(at, placeholder.size(), id);
    return result;
}

void check(const Answer& answer) {
    if (answer.status < 200 || answer.status > 599) std::abort();
    if (answer.content_type != "application/json" || answer.file || !answer.fixed_body.empty()) return;
    // Some are lists.
    const auto json = wire::parse_object(R"({"answer":)" + answer.body + "}");
    if (!json) std::abort();
    const auto& value = (*json)["answer"];
    if (answer.status >= 400 && !(value.IsObject() && value.HasMember("error"))) std::abort();
}

bool may_change(const Request& request) { return request.method != "GET" && request.method != "HEAD"; }

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
    ::setenv("PATH", "/nowhere", 1);  // no compiler is asked for its sysroot
    spdlog::set_level(spdlog::level::off);
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static auto scene = std::make_unique<Scene>();
    const std::string text = with_session({reinterpret_cast<const char*>(data), size}, scene->session->id());
    const std::size_t line = text.find('\n'), space = text.find(' ');
    if (line == std::string::npos || space > line) return 0;
    auto target = parse_target(std::string_view(text).substr(space + 1, line - space - 1));
    if (!target) return 0;
    Request request;
    request.method = text.substr(0, space);
    request.path = std::move(target->path);
    request.query = std::move(target->query);
    request.host = "localhost";
    request.remote = request.client = "127.0.0.1";
    if (text.compare(line, 2, "\n\n") == 0) request.body = text.substr(line + 2);
    if (check_origin(request, {})) std::abort();
    switch (Api::way_of(request)) {
        case Api::Way::agent:
            scene->desk.api.agent_request(request, [](const Answer& answer) { check(answer); });
            break;
        case Api::Way::stream:
        case Api::Way::file:
            return 0;
        case Api::Way::session:
            (void)scene->desk.api.needs(request);
            [[fallthrough]];
        default:
            check(scene->desk.api.answer(request));
    }
    if (may_change(request)) scene = std::make_unique<Scene>();
    return 0;
}
