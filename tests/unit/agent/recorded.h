// Tools for tests of whole recordings: a target that burns CPU, a sink that stores batches, and a recording between
// them.
#pragma once

#include <catch2/catch.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <utility>
#include <vector>

#include "agent/recording/recorder.h"

namespace flamewire::agent {

// A child process that burns CPU until it is stopped.
class Burner {
public:
    Burner() : pid_(::fork()) {
        if (pid_ != 0) return;
        ::alarm(60);  // in case the test hangs
        for (;;) asm volatile("");
    }
    ~Burner() { stop(); }
    Burner(const Burner&) = delete;
    Burner& operator=(const Burner&) = delete;
    void stop() {
        if (pid_ <= 0) return;
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
        pid_ = -1;
    }
    [[nodiscard]] std::uint32_t pid() const { return static_cast<std::uint32_t>(pid_); }

private:
    pid_t pid_;
};

class MemorySink : public BatchSink {
public:
    std::vector<wire::Batch> batches;
    int refusals = 0;  // this many of the next pushes find no room
    bool broken = false;
    bool kernel_names = false;
    bool unweighed = false;  // rows came without their events' periods

    // Another thread calls push(), where nothing can be checked.
    ~MemorySink() override { CHECK_FALSE(unweighed); }

    Result<bool> begin(const wire::RecordingId&) override {
        if (broken) return fail(ErrorCode::io, "broken from the start");
        return true;
    }
    Result<bool> push(wire::Batch& batch, const wire::EventPeriods& periods) override {
        if (broken) return fail(ErrorCode::io, "no space");
        if (refusals > 0) {
            --refusals;
            return false;
        }
        unweighed = unweighed || (periods.size() <= 1 && !batch.rows.empty());
        batches.push_back(std::move(batch));
        return true;
    }
    [[nodiscard]] bool names_kernel_at_end() const override { return kernel_names; }
    [[nodiscard]] Backlog backlog() const override { return {3, 77}; }

    [[nodiscard]] std::uint64_t samples() const {
        std::uint64_t sum = 0;
        for (const wire::Batch& batch : batches)
            for (const wire::Row& row : batch.rows) sum += row.count;
        return sum;
    }
};

inline RecordingPlan plan_for(std::uint32_t pid, const char* events = "cpu-clock") {
    RecordingPlan plan;
    plan.target = "the burner";
    plan.pids = {pid};
    plan.settings.events = events;
    plan.settings.frequency_hz = 997;
    plan.settings.interval_ms = 20;
    auto wanted = parse_requested(plan.settings, real_sysfs());
    REQUIRE(wanted.has_value());
    plan.wanted = *wanted;
    return plan;
}

inline Capabilities here() { return read_capabilities(real_sysfs()); }

inline bool perf_works() {
    if (here().perf_events) return true;
    WARN("NOT tested: perf_event_open is not allowed here");
    return false;
}

inline std::unique_ptr<Recorder> record(RecordingPlan plan, BatchSink& sink, std::function<void()> on_end = {}) {
    auto recorder = Recorder::open(std::move(plan), here(), describe_machine(), sink, std::move(on_end));
    INFO((recorder ? std::string() : recorder.error().message));
    REQUIRE(recorder.has_value());
    return *std::move(recorder);
}

template <class Condition>
bool soon(Condition condition) {
    for (int i = 0; i < 4000 && !condition(); ++i) ::usleep(2500);
    return condition();
}

}  // namespace flamewire::agent
