// Exactly-once delivery: decides which batches of a recording are new, from their headers alone. The session has one
// Sequence and checks it before it stores a batch. Batches arrive in order of seq over one connection. After a
// reconnect they are repeated from the acknowledged one on.
#pragma once

#include <cstdint>
#include <string>

#include "wire/batch.h"

namespace flamewire::server {

class Sequence {
public:
    enum class Kind {
        next,       // store it
        duplicate,  // all of it is already here: acknowledge it, do not store it
        overlap,    // a merged batch of which a part is already here: storing it would count that part twice
        gap,        // store it, but batches before it are missing
        stale,      // new seq, but of an earlier epoch: its ids are no longer valid
        malformed,  // seq 0, epoch 0, or first_seq after seq
    };

    [[nodiscard]] Kind classify(const wire::BatchHeader& header) const;
    // Call it after the batch is on disk. Returns how many batches are missing before it (0 unless `classify()`
    // returned gap).
    std::uint64_t advance(const wire::BatchHeader& header);

    [[nodiscard]] std::uint64_t last_seq() const { return last_seq_; }
    [[nodiscard]] std::uint32_t epoch() const { return epoch_; }
    // Batches that never arrived, summed over all gaps.
    [[nodiscard]] std::uint64_t missing() const { return missing_; }

private:
    std::uint64_t last_seq_ = 0;
    std::uint64_t missing_ = 0;
    std::uint32_t epoch_ = 0;
};

}  // namespace flamewire::server
