// Encoded batches that the server has not acknowledged, oldest first, within a byte bound. Pure bookkeeping: no sockets, no threads.
// At the bound the oldest batches that were never sent are merged into coarser time buckets, then lose their rows (counted as a Loss in
// the next batch); their table entries always survive. What was sent once stays byte for byte as it was: the server may have it.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "base/result.h"
#include "wire/batch.h"

namespace flamewire::agent {

struct SpooledBatch {
    std::uint64_t first_seq = 0, seq = 0;
    std::uint32_t epoch = 0;
    std::string frame;  // header and payload, ready for the socket
    bool sent = false;  // at least once
};

class Spool {
public:
    explicit Spool(std::size_t limit_bytes) : limit_bytes_(limit_bytes) {}

    // Encodes and keeps; shrinks older ones when over the bound.
    void push(wire::Batch batch, const wire::EventPeriods& periods);
    // Everything up to seq is on the server's disk.
    void acknowledge(std::uint64_t seq);
    // After a reconnect: all that is kept is to be sent (again).
    void rewind();
    // The next batch to send, marked as sent; nothing when all was sent.
    const SpooledBatch* next();

    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    [[nodiscard]] bool empty() const { return batches_.empty(); }
    [[nodiscard]] std::size_t unsent() const;

private:
    std::size_t limit_bytes_;
    std::size_t bytes_ = 0;
    std::deque<SpooledBatch> batches_;
    std::size_t next_ = 0;
};

}  // namespace flamewire::agent
