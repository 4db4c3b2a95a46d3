#include "agent/recording/target_counters.h"

#include <fmt/format.h>

#include <utility>

namespace flamewire::agent {

Result<bool> TargetCounters::open() {
    const RecordingPlan& recording = setup_.plan;
    const Kernel& kernel = *setup_.environment.kernel;
    CountingPlan counted = plan(recording.settings, recording.wanted, recording.pids);
    counted.enable_on_exec = recording.launched && recording.delay_ms == 0;
    counted.start_disabled = recording.launched && recording.delay_ms != 0;
    auto counting = Counting::open(counted, setup_.capabilities, kernel);
    if (!counting && recording.wanted.events.empty()) return std::unexpected(std::move(counting).error());
    if (!counting) {
        report(counting.error());
        counted.wanted.clear();
        counting = Counting::open(counted, setup_.capabilities, kernel);
    }
    counting_ = TRY(std::move(counting));
    return true;
}

Result<bool> TargetCounters::replace(const Settings& settings, const RequestedEvents& wanted,
                                     const Capabilities& capabilities, bool start_disabled) {
    CountingPlan counted = plan(settings, wanted, members_.living());
    counted.start_disabled = start_disabled;
    return counting_->replace(counted, capabilities, folder_);
}

void TargetCounters::report(const Error& error) {
    batch_.add_notice("counters-failed", fmt::format("Nothing is counted: {}.", error.message), {});
}

CountingPlan TargetCounters::plan(const Settings& settings, const RequestedEvents& wanted,
                                  std::vector<std::uint32_t> pids) const {
    CountingPlan plan;
    plan.wanted = wanted.counters;
    plan.pids = std::move(pids);
    plan.scope = setup_.plan.scope;
    plan.user_only = !settings.kernel;
    return plan;
}

}  // namespace flamewire::agent
