#include "agent/recording/batch_outbox.h"

#include <unistd.h>

#include "agent/log.h"
#include "base/clock.h"

namespace flamewire::agent {
namespace {

// How long the last batch waits for room on its way to the link thread.
constexpr std::uint64_t last_batch_patience_ns = 2'000'000'000;

}  // namespace

std::uint64_t ClosedBatch::samples() const {
    std::uint64_t samples = 0;
    for (const wire::Row& row : batch.rows) samples += row.count;
    return samples;
}

bool BatchOutbox::push() {
    while (!held_.empty() && !error_) {
        ClosedBatch& oldest = *held_.front();
        const std::uint64_t samples = oldest.samples();
        Result<bool> accepted = sink_.push(oldest.batch, oldest.periods);
        if (!accepted) {
            error_ = std::move(accepted).error();
            return false;
        }
        if (!*accepted) return false;
        held_.pop_front();
        snapshot_.add_sent(samples);
    }
    return held_.empty();
}

void BatchOutbox::push_last(std::uint64_t now_ns) {
    const std::uint64_t deadline = now_ns + last_batch_patience_ns;
    while (!push() && !error_ && monotonic_ns() < deadline) ::usleep(2000);
    if (!held_.empty() && !error_) log("the link accepted no more batches; the end of the recording is missing");
}

BatchSink::Backlog BatchOutbox::backlog() const {
    BatchSink::Backlog backlog = sink_.backlog();
    backlog.queue_batches += static_cast<std::uint32_t>(held_.size());
    return backlog;
}

}  // namespace flamewire::agent
