// Where the batches of a recording go: to the server (output.h: LinkSink) or into a session file (FileSink).
#pragma once

#include <cstdint>

#include "base/result.h"
#include "wire/batch.h"

namespace flamewire::agent {

class BatchSink {
public:
    virtual ~BatchSink() = default;

    // A recording begins; its batches follow. An error (no such directory) ends it before it began.
    virtual Result<bool> begin(const wire::RecordingId& id) = 0;
    // True: taken, `batch` is moved from. False: no room now, `batch` is as it was and may be offered again. An error
    // is final: no batch will ever be taken (disk full).
    virtual Result<bool> push(wire::Batch& batch, const wire::EventPeriods& periods) = 0;
    // Names of kernel functions belong into the last batch: nobody can ask for them later.
    [[nodiscard]] virtual bool names_kernel_at_end() const = 0;

    struct Backlog {
        std::uint32_t queue_batches = 0;
        std::uint64_t spool_bytes = 0;
    };
    [[nodiscard]] virtual Backlog backlog() const = 0;
};

}  // namespace flamewire::agent
