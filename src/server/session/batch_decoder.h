// Decodes the batches of one recording, each once and in order. A batch changes the decoder only after it is on disk:
// decode() reads it, accept() moves on to the next one. Not thread-safe.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"
#include "profile/store/gap_repair.h"
#include "server/session/sequence.h"
#include "wire/batch.h"

namespace flamewire::server {

class BatchDecoder {
public:
    struct Decoded {
        wire::BatchHeader header;
        wire::Batch batch;
        wire::EventPeriods periods;  // after this batch, as `repair`
        profile::GapRepair repair;
    };

    [[nodiscard]] const Sequence& sequence() const { return sequence_; }
    // `bytes`: the batch with that header. Its kind must be `next` or `gap`. invalid: it is malformed.
    [[nodiscard]] Result<Decoded> decode(const wire::BatchHeader& header, Bytes bytes) const;
    // The batch is on disk. Completes it if batches before it are missing, and returns how many.
    std::uint64_t accept(Decoded& decoded);
    // The end of an accepted batch. `applied`: the store took it. Otherwise its entries count as missing.
    void finish(Decoded& decoded, bool applied);

private:
    Sequence sequence_;
    wire::EventPeriods periods_;
    profile::GapRepair repair_;
};

}  // namespace flamewire::server
