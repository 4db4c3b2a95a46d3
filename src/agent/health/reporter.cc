#include "agent/health/reporter.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <utility>

#include "base/clock.h"

namespace flamewire::agent {
namespace {

constexpr std::uint64_t ns_per_s = 1'000'000'000;
// Minimum time between rounds, and between checks for a receiver. CPU usage over less time consists of few ticks.
constexpr std::uint64_t shortest_ns = ns_per_s;

std::uint64_t ticks_per_second() { return static_cast<std::uint64_t>(std::max(1L, ::sysconf(_SC_CLK_TCK))); }

}  // namespace

HealthReporter::HealthReporter(HealthSettings settings, Callbacks callbacks)
    : callbacks_(std::move(callbacks)), collector_({}, ticks_per_second()), settings_(settings) {
    // Only the main thread handles signals.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

HealthSettings HealthReporter::settings() const {
    const std::lock_guard lock(mutex_);
    return settings_;
}

void HealthReporter::change(const HealthSettings& settings) {
    const std::lock_guard lock(mutex_);
    settings_ = settings;
    next_ns_ = std::max(monotonic_ns(), last_ns_ + std::max(shortest_ns, settings.interval_s * ns_per_s));
    changed_.notify_all();
}

void HealthReporter::round_soon() {
    const std::lock_guard lock(mutex_);
    next_ns_ = std::max(monotonic_ns(), last_ns_ + shortest_ns);
    changed_.notify_all();
}

void HealthReporter::stop() {
    {
        const std::lock_guard lock(mutex_);
        stopped_ = true;
        changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
}

void HealthReporter::run() {
    std::unique_lock lock(mutex_);
    while (!stopped_) {
        if (!settings_.enabled) {
            collector_.forget();
            changed_.wait(lock);
            continue;
        }
        const std::uint64_t now = monotonic_ns();
        if (now < next_ns_) {
            changed_.wait_for(lock, std::chrono::nanoseconds(next_ns_ - now));
            continue;
        }
        const HealthSettings settings = settings_;
        const std::uint64_t before = std::exchange(last_ns_, now);
        next_ns_ = now + settings.interval_s * ns_per_s;  // change() and round_soon() may overwrite it during the round
        lock.unlock();
        const std::optional<OwnState> own = callbacks_.own_state();
        if (own) {
            for (std::string& frame : collector_.round(settings, *own, {realtime_ns(), monotonic_ns()}))
                callbacks_.send(std::move(frame));
        } else {
            collector_.forget();
        }
        lock.lock();
        if (!own) {
            last_ns_ = before;
            next_ns_ = std::min(next_ns_, now + shortest_ns);
        }
    }
}

}  // namespace flamewire::agent
