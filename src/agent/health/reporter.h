// Collects and sends health on a thread of its own: a sensor on a slow bus, or a process that is just being replaced, may
// hold up a read of /proc or /sys, which must not hold up commands and signals.
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
        // Nothing: nobody would take the frames now (no connection, nothing is recorded), so there is no round.
        std::function<std::optional<OwnState>()> look;
        std::function<void(std::string)> send;
    };

    HealthReporter(HealthSettings settings, Callbacks callbacks);
    ~HealthReporter() { stop(); }
    HealthReporter(const HealthReporter&) = delete;
    HealthReporter& operator=(const HealthReporter&) = delete;

    // These from any thread.
    [[nodiscard]] HealthSettings settings() const;
    // The next round follows the interval from now on.
    void change(const HealthSettings& settings);
    // A recording begins: its first round comes now, or a second after the last one.
    void round_soon();
    // Waits for the round that is going on.
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
