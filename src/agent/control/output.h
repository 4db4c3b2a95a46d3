// The two ends that batches go to: a session file (or a pipe), and the link to the server.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "agent/batch_sink.h"
#include "agent/link/link.h"
#include "base/result.h"
#include "wire/control.h"
#include "wire/session_file.h"

namespace flamewire::agent {

// Writes hello and batches as a session file, each batch whole when push returns. The file is made when the recording
// begins, so that a target that cannot be sampled leaves nothing behind.
class FileSink final : public BatchSink {
public:
    // "-" is standard output. An existing file is refused unless `force`, which replaces it.
    FileSink(std::string path, bool force) : path_(std::move(path)), force_(force) {}

    // What begin() would refuse, said before anything is opened on the target.
    [[nodiscard]] Result<bool> check() const;
    void set_hello(wire::Hello hello) { hello_ = std::move(hello); }

    Result<bool> begin(const wire::RecordingId& id) override;
    Result<bool> push(wire::Batch& batch, const wire::EventPeriods& periods) override;
    [[nodiscard]] bool names_kernel_at_end() const override { return true; }
    [[nodiscard]] Backlog backlog() const override { return {}; }
    // A frame of device health, from another thread than push. Left out while there is no file, after the batch that ends
    // the recording, and when it cannot be written: the next batch meets the same trouble and says so.
    void put_metrics(std::string_view json);

    // Takes a file back that came to nothing: the command could not be run.
    void discard();

    [[nodiscard]] std::uint64_t size_bytes() const;

private:
    [[nodiscard]] Error about_file(Error error) const;
    Result<bool> open_writer();
    Result<bool> append(wire::Flag flag, std::string_view payload);

    std::string path_;
    bool force_;
    wire::Hello hello_;
    mutable std::mutex mutex_;  // of what follows
    bool ended_ = false;
    std::optional<wire::SessionWriter> writer_;
};

// Takes everything and keeps nothing: the recording is for its table.
class NoSink final : public BatchSink {
public:
    Result<bool> begin(const wire::RecordingId&) override { return true; }
    Result<bool> push(wire::Batch&, const wire::EventPeriods&) override { return true; }
    [[nodiscard]] bool names_kernel_at_end() const override { return false; }
    [[nodiscard]] Backlog backlog() const override { return {}; }
};

class LinkSink final : public BatchSink {
public:
    explicit LinkSink(Link& link) : link_(link) {}
    Result<bool> begin(const wire::RecordingId& id) override;
    Result<bool> push(wire::Batch& batch, const wire::EventPeriods& periods) override;
    // The server asks for them.
    [[nodiscard]] bool names_kernel_at_end() const override { return false; }
    [[nodiscard]] Backlog backlog() const override;

private:
    Link& link_;
};

}  // namespace flamewire::agent
