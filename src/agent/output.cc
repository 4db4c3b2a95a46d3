#include "agent/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/clock.h"

namespace flamewire::agent {

Result<bool> FileSink::check() const {
    struct stat info{};
    if (path_ == "-" || ::stat(path_.c_str(), &info) != 0) return true;
    if (S_ISDIR(info.st_mode)) return fail(ErrorCode::invalid, fmt::format("{} is a directory", path_));
    if (S_ISREG(info.st_mode) && !force_)
        return fail(ErrorCode::busy,
                    fmt::format("{} exists; remove it, give another name, or replace it with --force", path_));
    return true;
}

Result<bool> FileSink::begin(const wire::RecordingId& id) {
    TRY(check());
    struct stat info{};
    if (path_ == "-") {
        UniqueFd copy(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
        if (!copy) return fail_errno("write to standard output", errno);
        writer_.emplace(TRY(wire::SessionWriter::to_descriptor(std::move(copy))));
    } else if (::stat(path_.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
        // A named pipe or a device.
        UniqueFd fd(::open(path_.c_str(), O_WRONLY | O_CLOEXEC));
        if (!fd) return fail_errno("open " + path_, errno);
        writer_.emplace(TRY(wire::SessionWriter::to_descriptor(std::move(fd))));
    } else {
        if (force_) (void)::unlink(path_.c_str());
        writer_.emplace(TRY(wire::SessionWriter::create(path_)));
    }
    hello_.recording = wire::Hello::Kept{id, 1, 0};
    TRY(writer_->append(realtime_ns(), wire::Flag::reply, wire::encode_hello(hello_)));
    return true;
}

Result<bool> FileSink::push(wire::Batch& batch, const wire::EventPeriods& periods) {
    const std::int64_t now = realtime_ns();
    const wire::Frame frame = wire::batch_frame(wire::encode(batch, periods));
    auto written = writer_->append(now, frame.flag, frame.payload);
    if (written) return true;
    Error error = std::move(written).error();
    error.message = fmt::format("{}: {}", path_ == "-" ? "standard output" : path_, error.message);
    return std::unexpected(std::move(error));
}

void FileSink::discard() {
    struct stat info{};
    if (writer_ && ::fstat(writer_->fd(), &info) == 0 && S_ISREG(info.st_mode) && path_ != "-")
        (void)::unlink(path_.c_str());
    writer_.reset();
}

Result<bool> LinkSink::begin(const wire::RecordingId& id) {
    link_.begin_recording(id);
    return true;
}

Result<bool> LinkSink::push(wire::Batch& batch, const wire::EventPeriods& periods) {
    return link_.push(batch, periods);
}

BatchSink::Backlog LinkSink::backlog() const {
    const Link::Status status = link_.status();
    return {status.queue_batches, status.spool_bytes};
}

}  // namespace flamewire::agent
