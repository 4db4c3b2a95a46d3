// What the commands of a server do. A server may choose only among the processes that the command line allows.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <vector>

#include "agent/commands.h"
#include "agent/control/recording_controller.h"
#include "agent/health/reporter.h"
#include "agent/link/link.h"
#include "agent/options.h"

namespace flamewire::agent {

class ServerControl final : public Control {
public:
    // Refers to all of them. `health` has a value before the first command. `check_recording` handles a recording that
    // has ended by itself.
    ServerControl(const Options& options, RecordingController& recordings, const std::atomic<Link*>& link,
                  std::optional<HealthReporter>& health, std::function<void()> check_recording)
        : options_(options),
          recordings_(recordings),
          link_(link),
          health_(health),
          check_recording_(std::move(check_recording)) {}

    StatusReport status() override;
    Capabilities capabilities() override;
    Result<Running> start(const StartRequest& request) override;
    Result<Running> stop() override;
    Result<Running> pause() override;
    Result<Running> resume() override;
    Result<std::optional<Running>> configure(const SettingsChange& change) override;
    Result<Running> count_by(CountBy by) override;
    Result<bool> resolve_kernel() override;
    HealthSettings configure_metrics(const HealthChange& change) override;
    std::vector<ProcessEntry> list_processes() override;
    ProcessCheck verify_pid(std::uint32_t pid) override;
    Result<Capabilities> reprobe() override;
    Result<EventList> list_events(const EventQuery& query) override;

private:
    Result<Running> start_requested(const StartRequest& request);
    // Also reports targets that a server may not choose.
    [[nodiscard]] std::optional<Error> problem_for_server(const std::vector<std::uint32_t>& pids) const;
    // What an event needs that only the agent's options allow.
    [[nodiscard]] Result<bool> check_allowed(bool probes_kernel, bool breakpoints) const;
    [[nodiscard]] Result<RequestedEvents> requested(const Settings& settings) const;
    [[nodiscard]] Result<RecordingTarget> wide_for_server(const WideTarget& wide) const;

    const Options& options_;
    RecordingController& recordings_;
    const std::atomic<Link*>& link_;
    std::optional<HealthReporter>& health_;
    std::function<void()> check_recording_;
};

}  // namespace flamewire::agent
