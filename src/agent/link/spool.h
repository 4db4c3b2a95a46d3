// Encoded batches of one recording that the server has not acknowledged, oldest first, within a byte limit. No sockets,
// no threads. At the limit, batches that were never sent are merged in pairs into coarser time buckets, oldest first
// (10 ms, 40 ms … 2.56 s). After that they lose their rows, which a Loss in the same batch reports. Their table
// entries stay as long as a later row can refer to them. A batch that was sent never changes, because the server may
// have it.
//
// Invariant, tested against a model: samples in rows + samples in losses equals the samples pushed.
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
    std::uint64_t lost = 0;     // sum of the losses that report missing samples
    std::uint32_t level = 0;    // how often its rows were coarsened
    bool bare = false;          // is_bare() of the batch
};

class Spool {
public:
    explicit Spool(std::size_t limit_bytes) : limit_bytes_(limit_bytes) {}

    // Encodes and stores the batch. Shrinks older ones if the limit is exceeded. Seqs must increase by one.
    void push(wire::Batch batch, const wire::EventPeriods& periods);
    // Everything up to seq is on the server's disk.
    void acknowledge(std::uint64_t seq);
    // Call it after a reconnect: the server has everything up to seq, and everything after it is sent (again). True if
    // the recording must start a new epoch, because the server lacks batches that the current epoch refers to.
    bool resume_after(std::uint64_t seq);
    // Returns the next batch to send and marks it as sent. Null if all were sent. Valid until the spool changes.
    const SpooledBatch* next();

    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    [[nodiscard]] bool empty() const { return batches_.empty(); }
    [[nodiscard]] std::size_t unsent() const { return batches_.size() - next_; }
    // Bytes that were sent since the last resume and are not yet acknowledged.
    [[nodiscard]] std::size_t in_flight_bytes() const { return in_flight_bytes_; }
    [[nodiscard]] bool ever_sent() const { return ever_sent_; }
    [[nodiscard]] std::uint64_t last_seq() const { return last_seq_; }
    [[nodiscard]] std::uint64_t acknowledged_seq() const { return acknowledged_seq_; }
    // Samples in the rows of all stored batches.
    [[nodiscard]] std::uint64_t samples() const;
    // All stored batches, oldest first. Those returned by next() have `sent` set.
    [[nodiscard]] const std::deque<SpooledBatch>& batches() const { return batches_; }

private:
    struct Epoch {
        wire::EventPeriods periods;
        std::uint64_t first_seq = 0;
    };
    // Batches that another server acknowledged but the resuming one lacks. Reported with the next batch.
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
    std::map<std::uint32_t, Epoch> epochs_;  // epochs of the stored batches, and the newest
    std::uint32_t unusable_epoch_ = 0;       // the server cannot resolve references of epochs up to this one
    std::optional<Gap> gap_;
};

}  // namespace flamewire::agent
