// Lines that any client can cause in the log are limited.
#include "server/rate_limited_log.h"

#include <catch2/catch.hpp>
#include <spdlog/sinks/ostream_sink.h>

#include <algorithm>
#include <sstream>
#include <string>

using namespace flamewire::server;

namespace {

// The log while a test runs.
class Log {
public:
    Log() {
        spdlog::set_default_logger(
            std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_st>(text_)));
    }
    Log(const Log&) = delete;
    Log& operator=(const Log&) = delete;
    ~Log() { spdlog::set_default_logger(before_); }

    std::string text() { return text_.str(); }
    std::ptrdiff_t lines() { return std::ranges::count(text(), '\n'); }

private:
    std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
    std::ostringstream text_;
};

}  // namespace

TEST_CASE("a limited number of lines is written per minute, the others are counted") {
    Log log;
    constexpr unsigned lines = 20;
    RateLimitedLog limited(lines);
    const RateLimitedLog::Clock::time_point begin{};
    for (unsigned n = 0; n < lines + 7; ++n) {
        const auto now = begin + std::chrono::seconds(n);
        n % 2 ? limited.info("an agent connects", now) : limited.warn("an agent is refused", now);
    }
    CHECK(log.lines() == lines);
    limited.settle(begin + std::chrono::seconds(59));
    CHECK(log.lines() == lines);
    limited.settle(begin + std::chrono::seconds(60));
    CHECK(log.lines() == lines + 1);
    CHECK(log.text().find("7 more lines like these were left out") != std::string::npos);
    // The next minute begins with its first warning. If no line is left out, it ends without a count.
    limited.warn("again", begin + std::chrono::minutes(9));
    CHECK(log.lines() == lines + 2);
    limited.settle(begin + std::chrono::minutes(20));
    limited.settle(begin + std::chrono::minutes(30));
    CHECK(log.lines() == lines + 2);
}
