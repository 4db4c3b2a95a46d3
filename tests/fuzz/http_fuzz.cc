// Arbitrary bytes of a browser's connection: through the parser as RESTinio uses it, the checks of every request, and
// its answer. The first byte selects whether the page requires its token, and the pieces in which the bytes arrive.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "api_scene.h"
#include "server/http/access.h"
#include "server/http/messages.h"

using namespace flamewire;
using namespace flamewire::server;

namespace {

constexpr std::string_view token = "the-token-of-the-page";
constexpr std::uint16_t port = 8080;

// Reads one message after another, like RESTinio's connection_t.
class Connection {
public:
    Connection() { begin(); }

    // Returns the number of bytes that belong to the message, or nothing after an error that closes the connection.
    std::optional<std::size_t> feed(std::string_view bytes) {
        static const http_parser_settings callbacks =
            restinio::impl::create_parser_settings<restinio::default_http_methods_t>();
        const std::size_t taken = ::http_parser_execute(&parser_, &callbacks, bytes.data(), bytes.size());
        if (parser_.http_errno != HPE_OK && parser_.http_errno != HPE_PAUSED) return {};
        return taken;
    }
    [[nodiscard]] bool whole() const { return context_.m_message_complete; }
    // Returns the message, and starts the next one.
    Request take(std::string& target) {
        (void)context_.make_chunked_input_info_if_necessary();
        target = context_.m_header.request_target();
        Request request = request_of(context_.m_header, context_.m_body, asio::ip::make_address("127.0.0.1"));
        begin();
        return request;
    }

private:
    void begin() {
        ::http_parser_init(&parser_, HTTP_REQUEST);
        context_.reset();
        parser_.data = &context_;
    }

    http_parser parser_{};
    restinio::impl::http_parser_ctx_t context_{message_limits()};
};

// A client without the token must only reach the login form.
bool may_pass(const Request& request) {
    return request.authorization.contains(token) || request.cookies.contains("flamewire_8080=");
}

void serve(std::unique_ptr<fuzz::Scene>& scene, Request request, const std::string& target, Access& access) {
    if (const auto answer = admit(request, target, "/profiler/", {"desk.lan"}, access)) {
        if (answer->status < 300) std::abort();
        return fuzz::check(*answer);
    }
    if (access.required() && !may_pass(request)) std::abort();
    if (request.path.contains('\0') || request.body.size() > max_body_bytes) std::abort();
    fuzz::answer(scene, request);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
    ::setenv("PATH", "/nowhere", 1);  // prevents running compilers to get their sysroot
    spdlog::set_level(spdlog::level::off);
    limit_headers();
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static auto scene = std::make_unique<fuzz::Scene>();
    if (size == 0) return 0;
    const std::string bytes =
        fuzz::with_session({reinterpret_cast<const char*>(data + 1), size - 1}, scene->session->id());
    Access access;
    if ((data[0] & 1) != 0) access = Access(std::string(token), "/profiler/", port, false);
    const std::size_t piece = data[0] < 2 ? bytes.size() : data[0];
    Connection connection;
    for (std::string_view rest = bytes; !rest.empty();) {
        const auto taken = connection.feed(rest.substr(0, piece));
        if (!taken || (*taken == 0 && !connection.whole())) return 0;
        rest.remove_prefix(*taken);
        if (!connection.whole()) continue;
        std::string target;
        Request request = connection.take(target);
        serve(scene, std::move(request), target, access);
    }
    return 0;
}
