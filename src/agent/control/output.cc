#include "agent/control/output.h"

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

Error FileSink::about_file(Error error) const {
    error.message = fmt::format("{}: {}", path_ == "-" ? "standard output" : path_, error.message);
    return error;
}

Result<bool> FileSink::open_writer() {
    struct stat info{};
    if (path_ == "-") {
        UniqueFd copy(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
        if (!copy) return fail_errno("duplicate the descriptor", errno);
        writer_.emplace(TRY(wire::SessionWriter::to_descriptor(std::move(copy))));
    } else if (::stat(path_.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
        // A named pipe or a device.
        UniqueFd fd(::open(path_.c_str(), O_WRONLY | O_CLOEXEC));
        if (!fd) return fail_errno("open", errno);
        writer_.emplace(TRY(wire::SessionWriter::to_descriptor(std::move(fd))));
    } else {
        if (force_) (void)::unlink(path_.c_str());
        writer_.emplace(TRY(wire::SessionWriter::create(path_)));
    }
    return true;
}

Result<bool> FileSink::append(wire::Flag flag, std::string_view payload) {
    auto written = writer_->append(realtime_ns(), flag, payload);
    if (!written) return std::unexpected(about_file(std::move(written).error()));
    return true;
}

Result<bool> FileSink::begin(const wire::RecordingId& id) {
    (void)TRY(check());
    const std::lock_guard lock(mutex_);
    if (auto opened = open_writer(); !opened) {
        Error error = std::move(opened).error();
        const bool named = error.message.find(path_) != std::string::npos && path_ != "-";
        return std::unexpected(named ? std::move(error) : about_file(std::move(error)));
    }
    hello_.recording = wire::Hello::Kept{id, 1, 0};
    return append(wire::Flag::reply, wire::encode_hello(hello_));
}

Result<bool> FileSink::push(wire::Batch& batch, const wire::EventPeriods& periods) {
    const wire::Frame frame = wire::batch_frame(wire::encode(batch, periods));
    const std::lock_guard lock(mutex_);
    ended_ = batch.end.has_value();
    return append(frame.flag, frame.payload);
}

void FileSink::put_metrics(std::string_view json) {
    const std::lock_guard lock(mutex_);
    if (writer_ && !ended_) (void)append(wire::Flag::metrics, json);
}

std::uint64_t FileSink::size_bytes() const {
    const std::lock_guard lock(mutex_);
    return writer_ ? writer_->size_bytes() : 0;
}

void FileSink::discard() {
    const std::lock_guard lock(mutex_);
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
