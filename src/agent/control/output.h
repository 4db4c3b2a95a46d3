// The sinks of batches: a session file (or a pipe), the link to the server, or nothing.
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

// Writes hello and batches to a session file. Each batch is completely written when push returns. The file is created
// when the recording starts, so that a target that cannot be sampled does not leave a file behind.
class FileSink final : public BatchSink {
public:
    // "-" is standard output. An existing file is an error unless `force` is set, which replaces it.
    FileSink(std::string path, bool force) : path_(std::move(path)), force_(force) {}

    // Reports errors of begin() before anything is opened on the target.
    [[nodiscard]] Result<bool> check() const;
    void set_hello(wire::Hello hello) { hello_ = std::move(hello); }

    Result<bool> begin(const wire::RecordingId& id) override;
    Result<bool> push(wire::Batch& batch, const wire::EventPeriods& periods) override;
    [[nodiscard]] bool names_kernel_at_end() const override { return true; }
    [[nodiscard]] Backlog backlog() const override { return {}; }
    // Writes a frame of health data; called from another thread than push. Does nothing while there is no file and
    // after the batch that ends the recording. Ignores write errors, because the next batch reports the same error.
    void put_metrics(std::string_view json);

    // Removes the file, because the command could not be run.
    void discard();

    [[nodiscard]] std::uint64_t size_bytes() const;

private:
    [[nodiscard]] Error about_file(Error error) const;
    Result<bool> open_writer();
    Result<bool> append(wire::Flag flag, std::string_view payload);

    std::string path_;
    bool force_;
    wire::Hello hello_;
    mutable std::mutex mutex_;  // protects what follows
    bool ended_ = false;
    std::optional<wire::SessionWriter> writer_;
};

// Accepts and discards everything, for recordings that only print a table.
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
    // The server requests them.
    [[nodiscard]] bool names_kernel_at_end() const override { return false; }
    [[nodiscard]] Backlog backlog() const override;

private:
    Link& link_;
};

}  // namespace flamewire::agent
