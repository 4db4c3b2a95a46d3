// Receives the batches of a recording: the server (output.h: LinkSink) or a session file (FileSink).
#pragma once

#include <cstdint>

#include "base/result.h"
#include "wire/batch.h"

namespace flamewire::agent {

class BatchSink {
public:
    virtual ~BatchSink() = default;

    // Starts a recording, whose batches follow. An error (no such directory) prevents the recording.
    virtual Result<bool> begin(const wire::RecordingId& id) = 0;
    // True: accepted, and `batch` is moved from. False: no room now; `batch` is unchanged and can be pushed again. An
    // error is permanent (disk full): later batches fail, too.
    virtual Result<bool> push(wire::Batch& batch, const wire::EventPeriods& periods) = 0;
    // Whether the last batch must contain names of kernel functions, because they cannot be requested later.
    [[nodiscard]] virtual bool names_kernel_at_end() const = 0;

    struct Backlog {
        std::uint32_t queue_batches = 0;
        std::uint64_t spool_bytes = 0;
    };
    [[nodiscard]] virtual Backlog backlog() const = 0;
};

}  // namespace flamewire::agent
