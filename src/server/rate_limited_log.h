// A log with a rate limit (base/line_rate_limit.h), so that a peer cannot fill the disk. One thread.
#pragma once

#include <spdlog/spdlog.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "base/line_rate_limit.h"

namespace flamewire::server {

class RateLimitedLog {
public:
    using Clock = std::chrono::steady_clock;
    static constexpr std::chrono::nanoseconds window{LineRateLimit::window_ns};

    explicit RateLimitedLog(unsigned lines = 20) : limit_(lines) {}

    void warn(const std::string& line, Clock::time_point now = Clock::now()) {
        if (is_within(now)) spdlog::warn("{}", line);
    }
    void info(const std::string& line, Clock::time_point now = Clock::now()) {
        if (is_within(now)) spdlog::info("{}", line);
    }
    // Logs how many lines were left out once their minute is over. Call it periodically.
    void settle(Clock::time_point now = Clock::now()) {
        if (const std::uint64_t left_out = limit_.take_omitted(ns(now)))
            spdlog::warn("{} more lines like these were left out within a minute", left_out);
    }

private:
    bool is_within(Clock::time_point now) {
        settle(now);
        return limit_.admits(ns(now));
    }
    static std::uint64_t ns(Clock::time_point time) {
        return static_cast<std::uint64_t>(std::chrono::nanoseconds(time.time_since_epoch()).count());
    }

    LineRateLimit limit_;
};

}  // namespace flamewire::server
