#include "server/http/access.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace flamewire::server;
using namespace std::chrono_literals;

namespace {

const std::string token = "0123456789abcdef-a-token";
const Access::Date today{1'800'000'000s};

Request of(std::string method, std::string path, std::string cookies = {}) {
    Request request;
    request.method = std::move(method);
    request.path = std::move(path);
    request.cookies = std::move(cookies);
    request.remote = "127.0.0.1";
    return request;
}

std::string set_cookie(const Answer& answer) {
    const auto at = std::ranges::find(answer.headers, "Set-Cookie", &std::pair<std::string, std::string>::first);
    return at == answer.headers.end() ? std::string{} : at->second;
}

std::string log_in(Access& access, Access::Date date) {
    Request request = of("GET", "/");
    request.query["token"] = token;
    const auto answer = access.check(request, Access::Clock::now(), date);
    REQUIRE(answer);
    REQUIRE(answer->status == 303);
    const std::string cookie = set_cookie(*answer);
    CHECK(cookie.find("; Max-Age=2592000; ") != std::string::npos);
    return cookie.substr(0, cookie.find(';'));
}

int status(Access& access, const std::string& cookies, Access::Date date) {
    const auto answer = access.check(of("GET", "/api/status", cookies), Access::Clock::now(), date);
    return answer ? answer->status : 200;
}

}  // namespace

TEST_CASE("a login ends after thirty days, even if the browser keeps the cookie") {
    Access access(token, "/", 8080, false);
    const std::string cookie = log_in(access, today);
    CHECK(status(access, cookie, today) == 200);
    CHECK(status(access, "other=1; " + cookie, today + std::chrono::days(30) - 1s) == 200);
    CHECK(status(access, cookie, today + std::chrono::days(30)) == 401);
    CHECK(status(access, log_in(access, today + std::chrono::days(30)), today + std::chrono::days(31)) == 200);
}

TEST_CASE("only the server can create cookies") {
    Access access(token, "/", 8080, false);
    const std::string cookie = log_in(access, today);
    const std::size_t equals = cookie.find('='), dot = cookie.find('.');
    const std::string name = cookie.substr(0, equals + 1), signature = cookie.substr(dot);
    const std::string end = cookie.substr(equals + 1, dot - equals - 1);
    // Other end times, other spellings of the same one, other signatures, no signature.
    for (const std::string& value :
         {"1900000000" + signature, "0" + end + signature, "+" + end + signature, end + "x" + signature, signature,
          end + ".", end + signature.substr(0, signature.size() - 1), end, end + signature + "0",
          "99999999999999999999" + signature, "-1" + signature, std::string{}, std::string{"."}})
        CHECK(status(access, name + value, today) == 401);
    CHECK(status(access, "flamewire_8081" + cookie.substr(equals), today) == 401);
    Access other("another-token-for-the-page", "/", 8080, false);
    CHECK(status(other, cookie, today) == 401);
}

TEST_CASE("logging out removes the cookie") {
    Access access(token, "/profiler/", 8080, true);
    for (const std::string& cookies : {std::string{}, log_in(access, today)}) {
        const auto answer = access.check(of("POST", "/logout", cookies), Access::Clock::now(), today);
        REQUIRE(answer);
        CHECK(answer->status == 303);
        CHECK(set_cookie(*answer) == "flamewire_8080=; Max-Age=0; Path=/profiler/; HttpOnly; SameSite=Strict; Secure");
    }
    Access open;
    CHECK_FALSE(open.check(of("POST", "/logout")));
}
