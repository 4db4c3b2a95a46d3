// Arbitrary bytes as a request of a browser that is logged in: method and target, a blank line, the body.
#include <spdlog/spdlog.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "api_scene.h"

using namespace flamewire;
using namespace flamewire::server;

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
    ::setenv("PATH", "/nowhere", 1);  // prevents running compilers to get their sysroot
    spdlog::set_level(spdlog::level::off);
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static auto scene = std::make_unique<fuzz::Scene>();
    const std::string text = fuzz::with_session({reinterpret_cast<const char*>(data), size}, scene->session->id());
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
    fuzz::answer(scene, request);
    return 0;
}
