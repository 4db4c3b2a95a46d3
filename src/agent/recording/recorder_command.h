// Commands for a running recording. They run on the sampler thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "agent/commands.h"
#include "agent/perf/capabilities.h"
#include "agent/process/process_table.h"
#include "agent/recording/recording_plan.h"
#include "base/fd.h"
#include "base/result.h"

namespace flamewire::agent {

struct Pause {};
struct Resume {};
// New events, counters, frequency, interval or processes within the same recording. On an error, the old ones continue.
struct Change {
    Settings settings;
    RequestedEvents wanted;
    Capabilities capabilities;
    std::optional<RecordingTarget> target;
};
// More processes. The result is false if the recording already has all of them.
struct AddProcesses {
    std::vector<std::uint32_t> pids;
};
// Breakpoints of processes that the next AddProcesses may add: parts for events of these names.
struct AddBreakpoints {
    std::vector<EventSpec> events;
};
// Counts per thread or per CPU in addition to the totals, or stops doing so.
struct SetCountBy {
    CountBy by = CountBy::total;
};
// The next batch contains names of the kernel addresses seen so far.
struct ResolveKernel {};
// The launched command executes now, so --delay starts.
struct BeginDelay {};
// Duplicates the descriptor of a module that this recording has seen.
struct OpenModule {
    const FileIdentity* identity = nullptr;
    Result<UniqueFd>* file = nullptr;
};
using RecorderCommand = std::variant<Pause, Resume, std::shared_ptr<const Change>, AddProcesses, SetCountBy,
                                     ResolveKernel, BeginDelay, OpenModule, AddBreakpoints>;

}  // namespace flamewire::agent
