// Who may use the page: whoever has its token. A browser logs in with the address that the server prints (?token=) or in
// a form and gets a cookie that scripts and other sites cannot use; a program sends "Authorization: Bearer TOKEN".
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "server/http/request.h"
#include "server/log_pace.h"

namespace flamewire::server {

class Access {
public:
    using Clock = std::chrono::steady_clock;
    using Date = std::chrono::sys_seconds;

    // Nobody has to log in (--http-open).
    Access() = default;
    // `path`: where the page is, "/" or "/prefix/". `port` tells the cookies of servers on one host apart. `encrypted`: the
    // page comes by TLS, and its cookie only travels so.
    Access(std::string token, std::string path, std::uint16_t port, bool encrypted);

    // Nothing: the request may go on. Else its answer: a way to log in, the way back after it or after logging out, or a
    // refusal. `date` is the wall clock's, for cookies. One thread.
    std::optional<Answer> check(
        const Request& request, Clock::time_point now = Clock::now(),
        Date date = std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now()));

    [[nodiscard]] bool required() const { return !token_.empty(); }
    // For whoever has a clock that ticks: the log's lines that were left out are told.
    void settle() { log_.settle(); }

    // Wrong tokens of one address within a minute that are logged. Nobody is locked out: behind a proxy all have one
    // address, and 128 random bits cannot be guessed at any rate.
    static constexpr int max_failures = 10;
    // How long a browser stays logged in; its cookie carries the end of that time, signed.
    static constexpr std::chrono::days login_time{30};

private:
    struct Failures {
        int count = 0;
        Clock::time_point since{};
    };
    // The cookie's value for a login until `end`; another token makes it worthless.
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
    LogPace log_;
};

// The token in a file, without the white space around it. invalid: too short to be a secret. A file that other users can
// read is warned of: what keeps secrets for containers makes them so.
Result<std::string> read_token(const std::string& path);
// A new token of 128 random bits.
Result<std::string> random_token();

}  // namespace flamewire::server
