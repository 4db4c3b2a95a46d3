// Replays a capture through the agent's recorder, without the kernel and without the recorded processes. Two replays of
// a capture by the same build give equal batches.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/commands.h"
#include "agent/machine.h"
#include "agent/recording/recording_plan.h"
#include "base/result.h"
#include "replay/capture_file.h"
#include "replay/replay_system.h"
#include "wire/batch.h"

namespace flamewire::replay {

struct Replayed {
    agent::RecordingPlan plan;
    agent::Machine machine;
    agent::Capabilities capabilities;
    std::vector<wire::Batch> batches;
    std::vector<wire::EventPeriods> periods;  // of each batch, for wire::encode
    std::optional<Error> refused;             // why the recording failed to open
    bool ended_early = false;                 // the capture ends before the recording does
    agent::Accounting accounting;
    std::string account_line;  // Recorder::account_line
    Fidelity fidelity;
};

// invalid: damaged, or it ends before the recording starts. unsupported: the capture is from a machine of the other
// byte order.
Result<Replayed> replay(const CaptureFile& capture);

}  // namespace flamewire::replay
