#include "agent/link/kept_recordings.h"

#include <utility>

#include "agent/log.h"

namespace flamewire::agent {

void KeptRecordings::begin(const wire::RecordingId& id) {
    if (kept_.empty() || kept_.back().id != id) kept_.push_back({id, Spool(spool_bytes_)});
}

void KeptRecordings::push(wire::Batch batch, const wire::EventPeriods& periods) {
    begin(batch.recording_id);
    kept_.back().spool.push(std::move(batch), periods);
}

void KeptRecordings::keep_within_bound() {
    std::size_t kept_bytes = bytes();
    while (kept_.size() > 1 && kept_bytes > spool_bytes_) {
        const Spool& oldest = kept_.front().spool;
        if (!oldest.empty())
            log("an earlier recording that no server received is dropped: {} samples", oldest.samples());
        kept_bytes -= oldest.bytes();
        kept_.pop_front();
    }
}

void KeptRecordings::drop_finished() {
    while (kept_.size() > 1 && kept_.front().spool.empty()) kept_.pop_front();
}

std::size_t KeptRecordings::bytes() const {
    std::size_t bytes = 0;
    for (const Kept& kept : kept_) bytes += kept.spool.bytes();
    return bytes;
}

std::size_t KeptRecordings::batches() const {
    std::size_t batches = 0;
    for (const Kept& kept : kept_) batches += kept.spool.batches().size();
    return batches;
}

}  // namespace flamewire::agent
