#include "server/http/access.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/file.h"
#include "base/hex.h"
#include "server/limits.h"

namespace flamewire::server {
namespace {

constexpr std::size_t min_token_bytes = 16, max_token_bytes = 1024;
constexpr std::chrono::minutes failure_time{1};
constexpr std::size_t max_addresses = 1024;
constexpr std::string_view bearer = "Bearer ";

bool equal_secrets(std::string_view a, std::string_view b) {
    return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string hmac(std::string_view key, std::string_view text) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int size = 0;
    ::HMAC(::EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(), &size);
    return to_hex(std::as_bytes(std::span(digest)).first(size));
}

bool wants_page(const Request& request) {
    return !request.path.starts_with("/api") && request.path != "/metrics" && request.authorization.empty();
}

// A reverse proxy may pass on paths unchanged or without its prefix; both work. Returns an answer to redirect to the
// path with a trailing slash: the page's URLs are relative to it.
std::optional<Answer> below_prefix(Request& request, std::string_view prefix) {
    if (prefix.size() < 2) return {};
    if (request.path == prefix.substr(0, prefix.size() - 1)) {
        Answer answer;
        answer.status = 308;
        answer.content_type = "text/plain";
        answer.headers.emplace_back("Location", prefix);
        return answer;
    }
    if (request.path.starts_with(prefix)) request.path.erase(0, prefix.size() - 1);
    return {};
}

// The page contains nothing from the request.
std::string login_page(std::string_view why) {
    return fmt::format(
        R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="dark light"><title>Flamewire: log in</title>
<style>body{{font:15px/1.5 system-ui,sans-serif;display:grid;place-items:center;min-height:90vh;margin:0}}
form{{display:grid;gap:.7rem;width:min(24rem,86vw)}}h1{{font-size:1.3rem;margin:0}}p{{margin:0}}
input,button{{font:inherit;padding:.5rem .7rem}}</style></head>
<body><form method="post" action="login"><h1>Flamewire</h1><p role="status">{}</p>
<label for="token">Token</label><input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
<button>Log in</button></form></body></html>
)",
        why);
}

}  // namespace

Access::Access(std::string token, std::string path, std::uint16_t port, bool encrypted)
    : token_(std::move(token)),
      path_(std::move(path)),
      cookie_name_(fmt::format("flamewire_{}", port)),
      encrypted_(encrypted) {}

std::string Access::cookie_until(Date end) const {
    const auto seconds = end.time_since_epoch().count();
    return fmt::format("{}.{}", seconds, hmac(token_, fmt::format("flamewire page 2 {}", seconds)));
}

bool Access::is_valid(std::string_view cookie, Date date) const {
    std::int64_t seconds = 0;
    const auto [rest, error] = std::from_chars(cookie.data(), cookie.data() + cookie.size(), seconds);
    if (error != std::errc{} || !std::string_view(rest, cookie.data() + cookie.size()).starts_with('.')) return false;
    const Date end{std::chrono::seconds(seconds)};
    return equal_secrets(cookie, cookie_until(end)) && date < end;
}

bool Access::has_valid_cookie(std::string_view cookies, Date date) const {
    while (!cookies.empty()) {
        const std::size_t end = cookies.find(';');
        std::string_view one = cookies.substr(0, end);
        cookies = end == std::string_view::npos ? std::string_view{} : cookies.substr(end + 1);
        while (one.starts_with(' ')) one.remove_prefix(1);
        const std::size_t equals = one.find('=');
        if (equals != std::string_view::npos && one.substr(0, equals) == cookie_name_ &&
            is_valid(one.substr(equals + 1), date))
            return true;
    }
    return false;
}

bool Access::too_many(const std::string& client, Clock::time_point now) {
    const auto at = failures_.find(client);
    if (at == failures_.end()) return false;
    if (now - at->second.since > failure_time)
        failures_.erase(at);
    else
        return at->second.count >= max_failures;
    return false;
}

void Access::failed(const Request& request, Clock::time_point now) {
    if (too_many(request.client, now)) {
        limit_reached(Limit::wrong_tokens);
        return;
    }
    if (failures_.size() >= max_addresses) failures_.clear();
    ++failures_.try_emplace(request.client, Failures{0, now}).first->second.count;
    log_.warn(fmt::format("security: a wrong token of the page came from {}", request.remote), now);
}

Answer Access::refuse(const Request& request, std::string_view why) const {
    Answer answer;
    if (wants_page(request)) {
        answer.content_type = "text/html; charset=utf-8";
        answer.body = login_page(why);
        answer.headers.emplace_back(
            "Content-Security-Policy",
            "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; "
            "frame-ancestors 'none'");
        // Without any referrer a form has no origin, and would be refused as coming from another site.
        answer.headers.emplace_back("Referrer-Policy", "same-origin");
    } else {
        answer = error_answer(401, "login_required", why);
        answer.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"flamewire\"");
    }
    answer.status = 401;
    return answer;
}

Answer Access::to_page(std::string_view cookie, std::chrono::seconds max_age) const {
    Answer answer;
    answer.status = 303;
    answer.content_type = "text/plain";
    answer.headers.emplace_back("Location", path_);
    answer.headers.emplace_back(
        "Set-Cookie", fmt::format("{}={}; Max-Age={}; Path={}; HttpOnly; SameSite=Strict{}", cookie_name_, cookie,
                                  max_age.count(), path_, encrypted_ ? "; Secure" : ""));
    return answer;
}

Answer Access::log_in(std::string_view token, const Request& request, Clock::time_point now, Date date) {
    if (!equal_secrets(token, token_)) {
        failed(request, now);
        return refuse(request, "This is not the token. The server printed the right one when it started.");
    }
    failures_.erase(request.client);
    return to_page(cookie_until(date + login_time), login_time);
}

std::optional<Answer> Access::check(const Request& request, Clock::time_point now, Date date) {
    if (!required()) return {};
    if (request.method == "POST" && request.path == "/logout") return to_page({}, std::chrono::seconds(0));
    if (has_valid_cookie(request.cookies, date)) {
        // The URL of a bookmark still has the token.
        if (wants_page(request) && !request.parameter("token").empty())
            return log_in(request.parameter("token"), request, now, date);
        return {};
    }
    if (request.authorization.starts_with(bearer)) {
        if (equal_secrets(std::string_view(request.authorization).substr(bearer.size()), token_)) return {};
        return log_in({}, request, now, date);
    }
    if (request.method == "POST" && request.path == "/login") {
        const auto form = parse_target("?" + request.body);
        const auto token = form ? form->query.find("token") : decltype(form->query.end()){};
        return log_in(form && token != form->query.end() ? std::string_view(token->second) : std::string_view{},
                      request, now, date);
    }
    if (wants_page(request) && !request.parameter("token").empty())
        return log_in(request.parameter("token"), request, now, date);
    return refuse(request, wants_page(request)
                               ? "Enter the page's token. The server printed it with the page's address when it "
                                 "started; the log of a service names the file that has it."
                               : "log in first: open the address that the server printed, or send its token as "
                                 "\"Authorization: Bearer TOKEN\"");
}

std::optional<Answer> admit(Request& request, std::string_view target, std::string_view prefix,
                            const std::vector<std::string>& names, Access& access) {
    auto parsed = parse_target(target);
    if (!parsed) return error_answer(400, "validation", "the URL has an invalid escape, or one that means a slash");
    request.path = std::move(parsed->path);
    request.query = std::move(parsed->query);
    if (auto moved = below_prefix(request, prefix)) return moved;
    if (auto refused = check_origin(request, names)) return refused;
    if (auto login = access.check(request)) {
        if (login->status == 401)
            spdlog::debug("{} {} of {} is refused: not logged in", request.method, request.path, request.remote);
        return login;
    }
    if (request.body.size() > max_body_bytes)
        return error_answer(413, "too_large", fmt::format("a body has at most {} MiB", max_body_bytes >> 20));
    return {};
}

Result<std::string> random_token() {
    std::array<std::byte, 16> bytes{};
    if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
        return fail_errno("no random bytes for a token", errno);
    return to_hex(bytes);
}

Result<std::string> read_token(const std::string& path) {
    std::string token = TRY(read_file(path, max_token_bytes));
    const auto is_space = [](unsigned char c) { return c <= ' '; };
    token.erase(token.begin(), std::ranges::find_if_not(token, is_space));
    while (!token.empty() && is_space(static_cast<unsigned char>(token.back()))) token.pop_back();
    if (token.size() < min_token_bytes || std::ranges::any_of(token, is_space))
        return fail(ErrorCode::invalid,
                    fmt::format("{} has no token of at least {} characters: write one word into it, as of "
                                "'openssl rand -hex 16'",
                                path, min_token_bytes));
    struct stat about{};
    if (::stat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode) && (about.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        spdlog::warn("security: {} can be read by other users, who could log in: chmod 600 {}", path, path);
    return token;
}

}  // namespace flamewire::server
