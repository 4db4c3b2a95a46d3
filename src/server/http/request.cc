#include "server/http/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <arpa/inet.h>
#include <cctype>

#include "base/json_writer.h"
#include "server/session/catalog.h"

namespace flamewire::server {
namespace {

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

std::optional<std::string> decode(std::string_view text, bool plus_is_space) {
    std::string result;
    result.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '%') {
            if (i + 2 >= text.size()) return {};
            const int high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
            if (high < 0 || low < 0 || (high == 0 && low == 0)) return {};
            result += static_cast<char>(high * 16 + low);
            i += 2;
        } else {
            result += plus_is_space && text[i] == '+' ? ' ' : text[i];
        }
    }
    return result;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

bool is_ip_literal(std::string_view host) {
    const std::string text(host);
    in6_addr address{};
    return ::inet_pton(AF_INET, text.c_str(), &address) == 1 || ::inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

bool is_api(std::string_view path) { return path == "/api" || path.starts_with("/api/") || path == "/metrics"; }

bool changes_something(const Request& request) {
    return request.method != "GET" && request.method != "HEAD" && request.method != "OPTIONS";
}

int status_of(ErrorCode code) {
    switch (code) {
        case ErrorCode::invalid: return 400;
        case ErrorCode::not_found: return 404;
        case ErrorCode::permission: return 403;
        case ErrorCode::busy: return 409;
        case ErrorCode::too_large: return 413;
        case ErrorCode::closed: return 502;
        case ErrorCode::unsupported:
        case ErrorCode::io: return 500;
    }
    return 500;
}

std::string_view code_of(ErrorCode code) {
    switch (code) {
        case ErrorCode::invalid: return "validation";
        case ErrorCode::not_found: return "not_found";
        case ErrorCode::permission: return "forbidden";
        case ErrorCode::busy: return "conflict";
        case ErrorCode::too_large: return "too_large";
        case ErrorCode::closed: return "agent_unreachable";
        case ErrorCode::unsupported:
        case ErrorCode::io: return "internal";
    }
    return "internal";
}

}  // namespace

Answer json_answer(std::string body) {
    Answer answer;
    answer.body = std::move(body);
    return answer;
}

Answer error_answer(int status, std::string_view code, std::string_view message) {
    return list_error(status, code, message, {}, {});
}

Answer error_answer(const Error& error) {
    return error_answer(status_of(error.code), code_of(error.code), error.message);
}

Answer list_error(int status, std::string_view code, std::string_view message, std::string_view list_name,
                  const std::vector<std::string>& list) {
    JsonWriter json;
    json.object();
    json.key("error");
    json.object();
    json.member("code", code);
    json.member("message", message);
    if (!list_name.empty()) json.texts(list_name, list);
    json.end_object();
    json.end_object();
    Answer answer = json_answer(json.take());
    answer.status = status;
    return answer;
}

Answer download(std::string content_type, std::string body, std::string_view file_name) {
    Answer answer = json_answer(std::move(body));
    answer.content_type = std::move(content_type);
    std::string plain;
    for (const char c : file_name)
        plain += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '_' ? c : '_';
    answer.headers.emplace_back("Content-Disposition", fmt::format("attachment; filename=\"{}\"", plain));
    return answer;
}

std::optional<Target> parse_target(std::string_view target) {
    target = target.substr(0, target.find('#'));
    const std::size_t mark = target.find('?');
    const std::string_view encoded = target.substr(0, mark);
    auto path = decode(encoded, false);
    // This server would decode an escaped slash as a separator, but a proxy's rules would not.
    if (!path || path->find('\0') != std::string::npos ||
        std::ranges::count(*path, '/') != std::ranges::count(encoded, '/'))
        return {};
    Target result;
    result.path = std::move(*path);
    std::string_view rest = mark == std::string_view::npos ? std::string_view{} : target.substr(mark + 1);
    while (!rest.empty()) {
        const std::size_t end = rest.find('&');
        const std::string_view pair = rest.substr(0, end);
        rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
        if (pair.empty()) continue;
        const std::size_t equals = pair.find('=');
        auto name = decode(pair.substr(0, equals), true);
        auto value = decode(equals == std::string_view::npos ? std::string_view{} : pair.substr(equals + 1), true);
        if (!name || !value) return {};
        result.query[std::move(*name)] = std::move(*value);
    }
    return result;
}

std::string_view host_name(std::string_view host) {
    if (host.starts_with('[')) {
        const std::size_t end = host.find(']');
        return end == std::string_view::npos ? std::string_view{} : host.substr(1, end - 1);
    }
    return host.substr(0, host.find(':'));
}

std::optional<Answer> check_origin(const Request& request, const std::vector<std::string>& names) {
    const std::string_view host = host_name(request.host);
    const bool ours =
        equal_ignoring_case(host, "localhost") || is_ip_literal(host) ||
        std::ranges::any_of(names, [&](const std::string& name) { return equal_ignoring_case(host, name); });
    if (!ours)
        return error_answer(403, "forbidden",
                            fmt::format("this server answers to localhost and to IP addresses, not to the "
                                        "name {:.200}: start it with --http-name for the names that it has",
                                        host.empty() ? "(none)" : host));
    // Reads also cost work, and their length and timing would leak information about profiles to another site.
    if (!changes_something(request) && !is_api(request.path)) return {};
    const bool other_origin = !request.origin.empty() && request.origin != "http://" + request.host &&
                              request.origin != "https://" + request.host;
    const bool other_site =
        !request.fetch_site.empty() && request.fetch_site != "same-origin" && request.fetch_site != "none";
    if (other_origin || other_site)
        return error_answer(403, "forbidden", "this server answers to its own page, not to those of other sites");
    return {};
}

const std::vector<std::pair<std::string, std::string>>& security_headers() {
    static const std::vector<std::pair<std::string, std::string>> headers = {
        {"Content-Security-Policy",
         "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; object-src 'none'; base-uri "
         "'none'; "
         "form-action 'none'; frame-ancestors 'none'"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"X-Content-Type-Options", "nosniff"},
        {"Referrer-Policy", "no-referrer"},
    };
    return headers;
}

}  // namespace flamewire::server
