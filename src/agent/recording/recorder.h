// One recording. Opens the events. Its own thread runs the sampler (sampler.h) until the recording is stopped or its
// target has exited. Every sample from the kernel becomes a row or a reported loss.
//
// Calls come from one other thread (the main thread). Commands run on the sampler thread between two rounds, so only the
// mailbox and the snapshot are shared.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "agent/batch_sink.h"
#include "agent/machine.h"
#include "agent/process/process_table.h"
#include "agent/recording/recorder_command.h"
#include "agent/recording/recorder_mailbox.h"
#include "agent/recording/recorder_snapshot.h"
#include "agent/recording/recording_plan.h"
#include "agent/recording/sampler.h"
#include "base/fd.h"
#include "base/result.h"

namespace flamewire::agent {

// How a recording ended.
struct Ended {
    std::string reason;
    std::optional<Error> error;  // permanent error of the sink
};

class Recorder {
public:
    // `on_end` is called on the sampler thread if the recording ends by itself. Errors: those of choose_events,
    // EventSet::open, sink.begin.
    static Result<std::unique_ptr<Recorder>> open(RecordingPlan plan, const Capabilities& capabilities,
                                                  const Machine& machine, BatchSink& sink, std::function<void()> on_end,
                                                  const Environment& environment = {});
    ~Recorder();
    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;

    // Runs the command on the sampler thread and waits for its result. closed: the recording has ended.
    Result<bool> execute(RecorderCommand command) { return mailbox_.execute(std::move(command)); }
    // Runs the command in the next round without waiting. At most one per round.
    void post(RecorderCommand command) { mailbox_.post(std::move(command)); }
    // Opens the file of a module that this recording has seen. Also works after the end of the recording.
    Result<UniqueFd> open_module(const FileIdentity& identity);
    // The next batch starts with empty tables. Call it from any thread. Does not block.
    void begin_epoch() { mailbox_.request_epoch(); }
    // Drains the rings, sends the last batch with the reason, and waits for the sampler thread. Does nothing if the
    // recording has ended.
    void stop(std::string reason, std::int32_t exit_code);
    // The same, without waiting for the sampler thread.
    void request_stop(std::string reason, std::int32_t exit_code) {
        mailbox_.request_stop(std::move(reason), exit_code);
    }

    // Any thread may call the functions below.
    [[nodiscard]] std::optional<Ended> ended() const;
    [[nodiscard]] bool paused() const { return snapshot_.paused(); }
    [[nodiscard]] Running running() const { return snapshot_.running(); }
    [[nodiscard]] Accounting accounting() const { return snapshot_.accounting(); }
    // Totals of all counters. Complete when the recording has ended.
    [[nodiscard]] CounterTotals counter_totals() const { return snapshot_.counter_totals(); }
    // The sample accounting in one line: samples from the kernel, and what they became.
    [[nodiscard]] std::string account_line() const { return snapshot_.account_line(); }

private:
    Recorder(RecordingPlan plan, const Machine& machine, BatchSink& sink, std::function<void()> on_end,
             const Environment& environment);
    void run(const Capabilities& capabilities);

    std::function<void()> on_end_;
    System* system_;
    RecorderMailbox mailbox_;
    RecorderSnapshot snapshot_;
    // Once the sampler thread runs, only it uses the process table and the sampler.
    ProcessTable processes_;
    std::unique_ptr<Sampler> sampler_;
    std::optional<Error> sink_error_;

    std::thread thread_;  // last: it uses everything above
};

}  // namespace flamewire::agent
