// The connections that ended before their hello was accepted. Logs them and lists the most recent ones.
#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "server/link/agent_info.h"
#include "server/rate_limited_log.h"

namespace flamewire::server {

class TurnedAwayList {
public:
    // `added` runs after each add().
    TurnedAwayList(RateLimitedLog& log, std::function<void()> added) : log_(log), added_(std::move(added)) {}

    // io thread.
    void add(const std::string& address, const std::string& reason);
    // Newest first. Any thread.
    [[nodiscard]] std::vector<TurnedAway> recent() const;

private:
    RateLimitedLog& log_;
    const std::function<void()> added_;
    mutable std::mutex mutex_;
    std::deque<TurnedAway> list_;  // under mutex_
};

}  // namespace flamewire::server
