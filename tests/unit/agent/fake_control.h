// A Control that records its calls and returns what the test defines. The fuzzer uses it, too.
#pragma once

#include <string>
#include <vector>

#include "agent/commands.h"

namespace flamewire::agent {

class FakeControl : public Control {
public:
    StatusReport report;
    Capabilities known;
    std::vector<ProcessEntry> processes;
    ProcessCheck check;
    std::optional<Error> refuse;  // the error of start, stop, and so on
    std::vector<std::string> calls;
    StartRequest started;
    SettingsChange change;
    HealthSettings health;
    std::uint32_t verified_pid = 0;
    EventList events;
    EventQuery listed_query;

    FakeControl() {
        known.paranoid = 2;
        known.sampling_events = {"cpu-clock", "page-faults"};
        known.perf_events = true;
        known.register_mask = 0xff0fff;
        known.user_stacks = true;
        known.unwind_modes = {"auto", "fp", "dwarf"};
        known.pmus = {"software"};
        known.max_sample_rate_hz = 100'000;
    }

    Running running_with(Settings settings, std::vector<std::uint32_t> pids) const {
        Running running;
        running.target = "pid 42 (demo)";
        running.recording_id = {0xAB, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x01};
        running.pids = std::move(pids);
        running.effective_frequency_hz = settings.period != 0 ? 0 : std::min(settings.frequency_hz, 1000U);
        running.settings = std::move(settings);
        running.events = {"cpu-clock"};
        running.counters = {{"cycles", "", wire::CounterStatus::unsupported},
                            {"instructions", "cpu_core", wire::CounterStatus::counted}};
        running.kernel = true;
        running.notices = {{"event-fallback", "cpu-clock instead of cycles", "sysctl -w a=1"}};
        return running;
    }

    StatusReport status() override { return report; }
    Capabilities capabilities() override { return known; }
    Result<Running> start(const StartRequest& request) override {
        calls.emplace_back("start");
        started = request;
        if (refuse) return std::unexpected(*refuse);
        return running_with(changed(report.settings, request.change), request.pids);
    }
    Result<Running> stop() override { return answer("stop"); }
    Result<Running> pause() override { return answer("pause"); }
    Result<Running> resume() override { return answer("resume"); }
    Result<std::optional<Running>> configure(const SettingsChange& wanted) override {
        calls.emplace_back("configure");
        change = wanted;
        if (refuse) return std::unexpected(*refuse);
        Settings settings = changed(report.settings, wanted);
        if (report.state != State::idle) return std::optional<Running>(running_with(std::move(settings), {42}));
        report.settings = std::move(settings);
        return std::optional<Running>{};
    }
    Result<Running> count_by(CountBy by) override {
        calls.emplace_back("count_by " + std::to_string(static_cast<int>(by)));
        if (refuse) return std::unexpected(*refuse);
        Running running = running_with(report.settings, {42});
        running.count_by = by;
        return running;
    }
    Result<bool> resolve_kernel() override {
        calls.emplace_back("resolve_kernel");
        if (refuse) return std::unexpected(*refuse);
        return true;
    }
    HealthSettings configure_metrics(const HealthChange& wanted) override {
        calls.emplace_back("configure_metrics");
        health = agent::changed(health, wanted);
        return health;
    }
    std::vector<ProcessEntry> list_processes() override {
        calls.emplace_back("list_processes");
        return processes;
    }
    ProcessCheck verify_pid(std::uint32_t pid) override {
        verified_pid = pid;
        return check;
    }
    Result<Capabilities> reprobe() override {
        calls.emplace_back("reprobe");
        return known;
    }
    Result<EventList> list_events(const EventQuery& query) override {
        calls.emplace_back("list_events");
        listed_query = query;
        if (refuse) return std::unexpected(*refuse);
        return events;
    }

private:
    Result<Running> answer(const char* name) {
        calls.emplace_back(name);
        if (refuse) return std::unexpected(*refuse);
        return running_with(report.settings, {42});
    }
};

}  // namespace flamewire::agent
