// Produces the batches of a recording: gathers what the parts of the sampler report, closes a batch at the end of each
// interval, and keeps the sample accounting.
#pragma once

#include <cstdint>
#include <optional>

#include "agent/batch_sink.h"
#include "agent/machine.h"
#include "agent/perf/event_set.h"
#include "agent/recording/batch_outbox.h"
#include "agent/recording/recorder_mailbox.h"
#include "agent/recording/sampler_parts.h"
#include "base/result.h"
#include "wire/batch.h"

namespace flamewire::agent {

class BatchProducer {
public:
    // All arguments must outlive this.
    BatchProducer(SamplerParts& parts, BatchSink& sink, RecorderMailbox& mailbox)
        : parts_(parts), sink_(sink), mailbox_(mailbox), outbox_(sink, parts.snapshot) {}

    // The recording begins. The first batch is due `first_ns` later at most.
    void begin(std::uint64_t start_ns, std::uint64_t first_ns);
    // The interval may be shorter from now on.
    void change_interval();
    [[nodiscard]] std::uint64_t due_ns() const { return due_ns_; }
    // Closes a batch if there is anything to send, and passes on what the sink has room for.
    void produce(std::uint64_t now_ns);
    // After everything else at the end of the recording: the last batch, with the reason.
    void produce_last();
    // Updates what other threads read.
    void publish();

    // Of all event sets, at the last batch.
    [[nodiscard]] const EventSetCounts& counts() const { return counts_; }
    // Whether the last batch must contain names of kernel functions.
    [[nodiscard]] bool names_kernel_at_end() const { return sink_.names_kernel_at_end(); }
    [[nodiscard]] Result<bool> begin_sink() { return sink_.begin(parts_.description.id()); }
    // Permanent error of the sink.
    [[nodiscard]] const std::optional<Error>& error() const { return outbox_.error(); }

private:
    [[nodiscard]] std::uint64_t interval_ns() const;
    void gather(std::uint64_t now_ns);
    [[nodiscard]] wire::AgentStats own_cost() const;

    SamplerParts& parts_;
    BatchSink& sink_;
    RecorderMailbox& mailbox_;
    BatchOutbox outbox_;
    ResidentMemory memory_;
    EventSetCounts counts_;
    std::uint64_t lost_reported_ = 0;  // part of counts_.samples_lost that is already in a batch
    std::uint64_t last_ns_ = 0, due_ns_ = 0;
    bool costly_tables_notified_ = false;
};

}  // namespace flamewire::agent
