// Passes closed batches to the sink in order. Keeps those that the sink has no room for. Use it only on the sampler
// thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "agent/batch_sink.h"
#include "agent/recording/recorder_snapshot.h"
#include "base/result.h"
#include "wire/batch.h"

namespace flamewire::agent {

// A closed batch, with the periods for encoding it.
struct ClosedBatch {
    wire::Batch batch;
    wire::EventPeriods periods;
    // In all rows.
    [[nodiscard]] std::uint64_t samples() const;
};

class BatchOutbox {
public:
    // The snapshot counts the samples in batches that the sink accepted. All arguments must outlive the outbox.
    BatchOutbox(BatchSink& sink, RecorderSnapshot& snapshot) : sink_(sink), snapshot_(snapshot) {}

    void add(std::unique_ptr<ClosedBatch> batch) { held_.push_back(std::move(batch)); }
    // Pushes held batches, oldest first. True if none are left.
    bool push();
    // The same at the end of a recording: retries for some time from `now_ns` on.
    void push_last(std::uint64_t now_ns);

    // What the sink has not passed on yet, and what it did not accept.
    [[nodiscard]] BatchSink::Backlog backlog() const;
    // Permanent error of the sink.
    [[nodiscard]] const std::optional<Error>& error() const { return error_; }

private:
    BatchSink& sink_;
    RecorderSnapshot& snapshot_;
    std::deque<std::unique_ptr<ClosedBatch>> held_;
    std::optional<Error> error_;
};

}  // namespace flamewire::agent
