// Controls access to the page: clients need its token. A browser logs in with the URL that the server prints (?token=)
// or with a form. It gets a cookie that scripts and other sites cannot use. A program sends "Authorization: Bearer
// TOKEN".
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/http/request.h"
#include "server/rate_limited_log.h"

namespace flamewire::server {

class Access {
public:
    using Clock = std::chrono::steady_clock;
    using Date = std::chrono::sys_seconds;

    // No login is required (--http-open).
    Access() = default;
    // `path`: where the page is, "/" or "/prefix/". `port` distinguishes the cookies of servers on one host.
    // `encrypted`: the page uses TLS, so its cookie is sent only over TLS.
    Access(std::string token, std::string path, std::uint16_t port, bool encrypted);

    // Returns nothing if the request may proceed. Otherwise returns its answer: a login page, a redirect after login or
    // logout, or a refusal. `date` is wall-clock time, for cookies. One thread.
    std::optional<Answer> check(
        const Request& request, Clock::time_point now = Clock::now(),
        Date date = std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now()));

    [[nodiscard]] bool required() const { return !token_.empty(); }
    // Call it periodically: it logs how many lines were left out.
    void settle() { log_.settle(); }

    // Wrong tokens per address and minute that are logged. No client is locked out: behind a proxy all clients share
    // one address, and 128 random bits cannot be guessed at any rate.
    static constexpr int max_failures = 10;
    // How long a browser stays logged in. Its cookie contains the signed end of that time.
    static constexpr std::chrono::days login_time{30};

private:
    struct Failures {
        int count = 0;
        Clock::time_point since{};
    };
    // The cookie's value for a login until `end`. It becomes invalid when the token changes.
    [[nodiscard]] std::string cookie_until(Date end) const;
    [[nodiscard]] bool is_valid(std::string_view cookie, Date date) const;
    [[nodiscard]] bool has_valid_cookie(std::string_view cookies, Date date) const;
    [[nodiscard]] Answer to_page(std::string_view cookie, std::chrono::seconds max_age) const;
    Answer log_in(std::string_view token, const Request& request, Clock::time_point now, Date date);
    [[nodiscard]] Answer refuse(const Request& request, std::string_view why) const;
    bool too_many(const std::string& client, Clock::time_point now);
    void failed(const Request& request, Clock::time_point now);

    std::string token_, path_ = "/", cookie_name_;
    bool encrypted_ = false;
    std::map<std::string, Failures> failures_;  // by client
    RateLimitedLog log_;
};

// What a request passes before the API, in this order. Sets its path and query from `target`, as the client sent it.
// `prefix`: the path of the page at a reverse proxy, "/" or "/prefix/". `names`: see check_origin(). Returns nothing if
// the request may proceed, otherwise its answer.
std::optional<Answer> admit(Request& request, std::string_view target, std::string_view prefix,
                            const std::vector<std::string>& names, Access& access);

// Reads the token in a file, without surrounding white space. invalid: too short to be a secret. Other users' read
// permission only causes a warning, because container secrets are often mounted that way.
Result<std::string> read_token(const std::string& path);
// Generates a token of 128 random bits.
Result<std::string> random_token();

}  // namespace flamewire::server
