// Exactly once: which batches of a recording are new. Pure bookkeeping on batch headers; the session keeps one and asks
// it before it stores anything. Batches arrive in order of seq over one connection, and again from the acknowledged one
// on after a reconnect.
#pragma once

#include <cstdint>
#include <string>

#include "wire/batch.h"

namespace flamewire::server {

class Sequence {
public:
    enum class Verdict {
        next,       // take it
        duplicate,  // all of it is here already: acknowledge, do not store
        overlap,    // a merged batch of which a part is here: taking it would count that part twice
        gap,        // take it, but batches before it are missing
        stale,      // new seq, but of an epoch that is over: its ids mean nothing any more
        malformed,  // seq 0, epoch 0, or first_seq after seq
    };

    [[nodiscard]] Verdict judge(const wire::BatchHeader& header) const;
    // After the batch is on disk. Returns how many batches are missing before it (0 unless judge() said gap).
    std::uint64_t take(const wire::BatchHeader& header);

    [[nodiscard]] std::uint64_t last_seq() const { return last_seq_; }
    [[nodiscard]] std::uint32_t epoch() const { return epoch_; }
    // Batches that never came, summed over all gaps.
    [[nodiscard]] std::uint64_t missing() const { return missing_; }

private:
    std::uint64_t last_seq_ = 0;
    std::uint64_t missing_ = 0;
    std::uint32_t epoch_ = 0;
};

}  // namespace flamewire::server
