#include "agent/health/reporter.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <deque>
#include <thread>

using namespace flamewire::agent;

namespace {

// The frames that arrived, with a wait for the next one of a type.
class Frames {
public:
    void put(std::string frame) {
        const std::lock_guard lock(mutex_);
        frames_.push_back(std::move(frame));
        came_.notify_all();
    }
    bool wait_for(const std::string& type) {
        std::unique_lock lock(mutex_);
        return came_.wait_for(lock, std::chrono::seconds(20), [&] {
            while (!frames_.empty()) {
                const std::string frame = std::move(frames_.front());
                frames_.pop_front();
                if (frame.find("\"type\":\"" + type + "\"") != std::string::npos) return true;
            }
            return false;
        });
    }
    bool empty() {
        const std::lock_guard lock(mutex_);
        return frames_.empty();
    }

private:
    std::mutex mutex_;
    std::condition_variable came_;
    std::deque<std::string> frames_;
};

}  // namespace

TEST_CASE("the reporter sends, follows its settings and stops") {
    Frames frames;
    HealthSettings settings;
    settings.interval_s = 60;
    HealthReporter reporter(settings,
                            {[] { return OwnState{}; }, [&](std::string frame) { frames.put(std::move(frame)); }});
    CHECK(frames.wait_for("system"));
    CHECK(frames.wait_for("agent"));
    settings.interval_s = 1;
    settings.disk = true;
    reporter.change(settings);
    CHECK(reporter.settings() == settings);
    CHECK(frames.wait_for("disk"));
    settings.interval_s = 60;
    reporter.change(settings);
    reporter.round_soon();
    CHECK(frames.wait_for("disk"));
    reporter.stop();
    reporter.stop();
}

TEST_CASE("a reporter that is off, or without a recipient, sends nothing and ends at once") {
    Frames frames;
    std::atomic<int> calls{0};
    HealthSettings off;
    off.enabled = false;
    {
        HealthReporter idle(off, {[&] {
                                      ++calls;
                                      return OwnState{};
                                  },
                                  [&](std::string frame) { frames.put(std::move(frame)); }});
        idle.round_soon();
        std::this_thread::sleep_for(std::chrono::milliseconds(100));  // a round must not come in this time
    }
    CHECK(calls == 0);
    std::mutex mutex;
    std::condition_variable was_called;
    bool called = false;
    HealthReporter no_recipient({}, {[&]() -> std::optional<OwnState> {
                                         const std::lock_guard lock(mutex);
                                         called = true;
                                         was_called.notify_all();
                                         return std::nullopt;
                                     },
                                     [&](std::string frame) { frames.put(std::move(frame)); }});
    {
        std::unique_lock lock(mutex);
        CHECK(was_called.wait_for(lock, std::chrono::seconds(20), [&] { return called; }));
    }
    no_recipient.stop();
    CHECK(frames.empty());
}
