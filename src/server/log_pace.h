// Rate limit for log lines that a remote peer can trigger as often as it likes. It writes the first lines of each
// minute and counts the rest, so that a peer cannot fill the disk. One thread.
#pragma once

#include <spdlog/spdlog.h>

#include <chrono>
#include <cstdint>
#include <string>

namespace flamewire::server {

class LogPace {
public:
    using Clock = std::chrono::steady_clock;
    static constexpr std::chrono::minutes window{1};

    explicit LogPace(unsigned lines = 20) : lines_(lines) {}

    void warn(const std::string& line, Clock::time_point now = Clock::now()) {
        if (is_within(now)) spdlog::warn("{}", line);
    }
    void info(const std::string& line, Clock::time_point now = Clock::now()) {
        if (is_within(now)) spdlog::info("{}", line);
    }
    // Logs how many lines were left out once their minute is over. Call it periodically.
    void settle(Clock::time_point now = Clock::now()) {
        if (written_ == 0 || now - since_ < window) return;
        if (left_out_ > 0) spdlog::warn("{} more lines like these were left out within a minute", left_out_);
        written_ = 0;
        left_out_ = 0;
    }

private:
    bool is_within(Clock::time_point now) {
        settle(now);
        if (written_ == 0) since_ = now;
        if (written_ == lines_) {
            ++left_out_;
            return false;
        }
        ++written_;
        return true;
    }

    unsigned lines_;
    unsigned written_ = 0;
    std::uint64_t left_out_ = 0;
    Clock::time_point since_{};
};

}  // namespace flamewire::server
