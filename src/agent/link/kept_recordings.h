// The recordings whose batches the server has not acknowledged yet, and the newest one, each with its spool. The oldest
// is being sent. Used only by the link thread.
#pragma once

#include <cstddef>
#include <deque>

#include "agent/link/spool.h"
#include "wire/batch.h"

namespace flamewire::agent {

class KeptRecordings {
public:
    struct Kept {
        wire::RecordingId id;
        Spool spool;
    };

    explicit KeptRecordings(std::size_t spool_bytes) : spool_bytes_(spool_bytes) {}

    // Batches of this recording follow.
    void begin(const wire::RecordingId& id);
    void push(wire::Batch batch, const wire::EventPeriods& periods);
    // The newest recording's spool shrinks itself. Older recordings that wait for a server are dropped as a whole.
    void keep_within_bound();
    // Drops recordings that the server has completely.
    void drop_finished();

    [[nodiscard]] bool empty() const { return kept_.empty(); }
    [[nodiscard]] Kept& sending() { return kept_.front(); }
    [[nodiscard]] bool sends_newest() const { return kept_.size() == 1; }
    [[nodiscard]] const Kept& newest() const { return kept_.back(); }
    [[nodiscard]] std::size_t bytes() const;
    [[nodiscard]] std::size_t batches() const;

private:
    std::size_t spool_bytes_;
    std::deque<Kept> kept_;  // newest last
};

}  // namespace flamewire::agent
