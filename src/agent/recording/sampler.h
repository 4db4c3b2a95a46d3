// The sampler: drains the rings, folds samples, and passes a batch to the sink every interval. All functions but the
// constructor run on the recorder's thread.
//
// All input of the sampler passes through a System, a Kernel and the sink, so that a recording can be captured and
// replayed.
#pragma once

#include <chrono>
#include <optional>

#include "agent/batch_sink.h"
#include "agent/perf/record.h"
#include "agent/recording/adaptation.h"
#include "agent/recording/batch_producer.h"
#include "agent/recording/reconfiguration.h"
#include "agent/recording/recorder_command.h"
#include "agent/recording/recorder_mailbox.h"
#include "agent/recording/recorder_snapshot.h"
#include "agent/recording/recording_setup.h"
#include "agent/recording/sampler_parts.h"
#include "base/result.h"

namespace flamewire::agent {

class Sampler final : private RecordSink {
public:
    // All references must outlive the sampler.
    Sampler(RecordingSetup setup, BatchSink& sink, ProcessTable& processes, RecorderMailbox& mailbox,
            RecorderSnapshot& snapshot);

    // Opens the events and begins the recording in the sink.
    Result<bool> open(const Capabilities& capabilities);
    // Samples until the mailbox has a request to stop, the target has exited, or the sink fails. Sends the last batch.
    void run();
    // Permanent error of the sink.
    [[nodiscard]] const std::optional<Error>& sink_error() const { return producer_.error(); }

private:
    Result<bool> open_events(const Capabilities& capabilities);
    void start_folding();
    void run_pending_command();
    Result<bool> perform(const RecorderCommand& command);
    Result<bool> pause();
    Result<bool> resume();
    [[nodiscard]] std::chrono::milliseconds next_timeout() const;
    void send_batch();
    void finish();

    void on_record(const Record& record, std::optional<std::uint32_t> event) override;
    // `event` as in RecordSink.
    using Event = std::optional<std::uint32_t>;
    void take(const SampleRecord& sample, Event event);
    void take(const ThrottleRecord& throttle, Event event);
    void take(const LostRecord& lost, Event event);
    void take(const SwitchRecord& change, Event) { parts_.off_cpu.track(change); }
    void take(const KsymbolRecord& symbol, Event) { parts_.folder.follow_program(symbol); }
    void take(const MmapRecord& map, Event);
    void take(const CommRecord& comm, Event);
    void take(const TaskRecord& task, Event);
    template <class Change>
    void apply(const Change& change, bool shown);

    SamplerParts parts_;
    RecorderMailbox& mailbox_;
    BatchProducer producer_;
    Adaptation adaptation_;
    Reconfiguration reconfiguration_;
};

}  // namespace flamewire::agent
