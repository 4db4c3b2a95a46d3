// Records the return values of a sink: whether it accepted a batch, and its backlog. The sink's own system calls are
// not inputs of the recording and are not captured.
#pragma once

#include "agent/batch_sink.h"
#include "agent/capture/capture.h"

namespace flamewire::agent {

class CapturingSink final : public BatchSink {
public:
    // Both must outlive the CapturingSink.
    CapturingSink(BatchSink& sink, Capture& capture) : sink_(sink), capture_(capture) {}

    Result<bool> begin(const wire::RecordingId& id) override;
    Result<bool> push(wire::Batch& batch, const wire::EventPeriods& periods) override;
    [[nodiscard]] bool names_kernel_at_end() const override { return sink_.names_kernel_at_end(); }
    [[nodiscard]] Backlog backlog() const override;

private:
    BatchSink& sink_;
    Capture& capture_;
};

}  // namespace flamewire::agent
