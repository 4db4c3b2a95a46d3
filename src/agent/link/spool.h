// Encoded batches of one recording that the server has not acknowledged, oldest first, within a byte bound. Pure
// bookkeeping: no sockets, no threads. At the bound batches that were never sent are merged in pairs into coarser time
// buckets, oldest first (10 ms, 40 ms … 2.56 s), then lose their rows (stated as a Loss in the same batch); their table
// entries survive as long as a later row can need them. What was sent once stays byte for byte as it was: the server
// may have it.
//
// Invariant, tested against a model: samples in rows + samples in losses is what was pushed, whatever happens.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "base/result.h"
#include "wire/batch.h"

namespace flamewire::agent {

struct SpooledBatch {
    std::uint64_t first_seq = 0, seq = 0;
    std::uint32_t epoch = 0;
    std::string frame;          // header and payload, ready for the socket
    bool sent = false;          // at least once
    std::uint64_t samples = 0;  // sum of the rows' counts
    std::uint64_t lost = 0;     // sum of the losses that mean missing samples
    std::uint32_t level = 0;    // how often its rows were coarsened
    bool bare = false;          // neither rows nor anything that refers to tables or fills them
};

class Spool {
public:
    explicit Spool(std::size_t limit_bytes) : limit_bytes_(limit_bytes) {}

    // Encodes and keeps; shrinks older ones when over the bound. Seqs count up by one.
    void push(wire::Batch batch, const wire::EventPeriods& periods);
    // Everything up to seq is on the server's disk.
    void acknowledge(std::uint64_t seq);
    // After a reconnect: the server has everything up to seq, and all that is kept after it is to be sent (again). True
    // when the recording must begin a new epoch: the server has not got the batches that the current one builds upon.
    bool resume_after(std::uint64_t seq);
    // The next batch to send, marked as sent; nothing when all was sent. Valid until the spool changes.
    const SpooledBatch* next();

    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    [[nodiscard]] bool empty() const { return batches_.empty(); }
    [[nodiscard]] std::size_t unsent() const { return batches_.size() - next_; }
    // Bytes that were sent since the last resume and are not acknowledged.
    [[nodiscard]] std::size_t in_flight_bytes() const { return in_flight_bytes_; }
    [[nodiscard]] bool ever_sent() const { return ever_sent_; }
    [[nodiscard]] std::uint64_t last_seq() const { return last_seq_; }
    [[nodiscard]] std::uint64_t acknowledged_seq() const { return acknowledged_seq_; }
    // Samples in the rows of everything kept.
    [[nodiscard]] std::uint64_t samples() const;
    // Everything kept, oldest first; what next() gave has `sent` set.
    [[nodiscard]] const std::deque<SpooledBatch>& batches() const { return batches_; }

private:
    struct Epoch {
        wire::EventPeriods periods;
        std::uint64_t first_seq = 0;
    };
    // Batches that a server acknowledged but the one that resumes has not got: stated with the next batch.
    struct Gap {
        std::uint64_t first_seq = 0;
        std::uint64_t samples = 0;
    };

    void shrink();
    bool merge_one_pair();
    bool drop_oldest_rows();
    bool drop_dead_tables();
    void state_gap(wire::Batch& batch);
    Result<wire::Batch> decode(const SpooledBatch& spooled) const;
    [[nodiscard]] SpooledBatch encode(wire::Batch& batch, std::uint32_t level) const;
    void replace(std::size_t index, SpooledBatch with);
    void forget_epochs();

    std::size_t limit_bytes_;
    std::size_t bytes_ = 0;
    std::deque<SpooledBatch> batches_;
    std::size_t next_ = 0;  // index of the first batch that was not sent since the last resume
    std::size_t in_flight_bytes_ = 0;
    bool ever_sent_ = false;
    std::uint64_t last_seq_ = 0, acknowledged_seq_ = 0;
    std::uint64_t acknowledged_samples_ = 0;
    std::map<std::uint32_t, Epoch> epochs_;  // of the batches kept, and the newest
    std::uint32_t unusable_epoch_ = 0;       // the server cannot follow references of epochs up to this one
    std::optional<Gap> gap_;
};

}  // namespace flamewire::agent
