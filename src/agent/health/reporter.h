// Collects and sends health data on a separate thread. A sensor on a slow bus or a process in execve can block a read
// of /proc or /sys, which must not delay commands and signals.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "agent/health/collector.h"
#include "agent/health/settings.h"

namespace flamewire::agent {

class HealthReporter {
public:
    // Both are called on the reporter's thread.
    struct Callbacks {
        // Returns nothing to skip the round if the frames would have no receiver: no connection, or no recording.
        std::function<std::optional<OwnState>()> own_state;
        std::function<void(std::string)> send;
    };

    HealthReporter(HealthSettings settings, Callbacks callbacks);
    ~HealthReporter() { stop(); }
    HealthReporter(const HealthReporter&) = delete;
    HealthReporter& operator=(const HealthReporter&) = delete;

    // Any thread may call the functions below.
    [[nodiscard]] HealthSettings settings() const;
    // The new interval applies from now on.
    void change(const HealthSettings& settings);
    // Call it when a recording starts. The next round comes now, or one second after the last one.
    void round_soon();
    // Waits for the current round.
    void stop();

private:
    void run();

    Callbacks callbacks_;
    HealthCollector collector_;

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    HealthSettings settings_;
    std::uint64_t next_ns_ = 0, last_ns_ = 0;
    bool stopped_ = false;

    std::thread thread_;  // last: it uses everything above
};

}  // namespace flamewire::agent
