#include "agent/recording/recorder_mailbox.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "agent/perf/open_error.h"
#include "base/system.h"

namespace flamewire::agent {

Result<bool> RecorderMailbox::open() {
    wake_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (wake_) return true;
    OpenFailure failure;
    failure.error = errno;
    // Any descriptor can be the one that hits the limit, so report the same error as for events.
    if (out_of_files(failure.error)) return std::unexpected(open_error(failure));
    return fail_errno("make an eventfd", failure.error);
}

Result<bool> RecorderMailbox::execute(RecorderCommand command) {
    std::unique_lock lock(mutex_);
    if (finished_ || stop_wanted_) return fail(ErrorCode::closed, "the recording has ended");
    command_ = std::move(command);
    command_result_.reset();
    wake();
    changed_.wait(lock, [&] { return command_result_.has_value() || finished_; });
    command_.reset();
    if (!command_result_) return fail(ErrorCode::closed, "the recording has ended");
    return *command_result_;
}

void RecorderMailbox::post(RecorderCommand command) {
    const std::lock_guard lock(mutex_);
    command_ = std::move(command);
    wake();
}

void RecorderMailbox::request_stop(std::string reason, std::int32_t exit_code) {
    {
        const std::lock_guard lock(mutex_);
        if (!stop_wanted_) {
            stop_wanted_ = stop_requested_ = true;
            end_reason_ = std::move(reason);
            end_code_ = exit_code;
        }
    }
    wake();
}

Result<bool> RecorderMailbox::wait_until_opened() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return opened_.has_value(); });
    return *opened_;
}

std::optional<std::string> RecorderMailbox::end_reason() const {
    const std::lock_guard lock(mutex_);
    if (!finished_) return std::nullopt;
    return end_reason_;
}

void RecorderMailbox::opened(Result<bool> result) {
    const std::lock_guard lock(mutex_);
    opened_ = std::move(result);
    changed_.notify_all();
}

void RecorderMailbox::clear_wake() const {
    std::uint64_t ignored = 0;
    (void)!::read(wake_.get(), &ignored, sizeof(ignored));
}

std::optional<RecorderCommand> RecorderMailbox::take_command() {
    const std::lock_guard lock(mutex_);
    return std::exchange(command_, {});
}

void RecorderMailbox::answer(Result<bool> result) {
    const std::lock_guard lock(mutex_);
    command_result_ = std::move(result);
    changed_.notify_all();
}

void RecorderMailbox::end(std::string reason) {
    const std::lock_guard lock(mutex_);
    if (std::exchange(stop_wanted_, true)) return;
    end_reason_ = std::move(reason);
}

bool RecorderMailbox::must_stop() const {
    const std::lock_guard lock(mutex_);
    if (stop_requested_) (void)System::current().input(inputs::stop, fmt::format("{} {}", end_code_, end_reason_));
    return stop_wanted_;
}

wire::End RecorderMailbox::end_of_recording() const {
    const std::lock_guard lock(mutex_);
    return {end_reason_, end_code_};
}

void RecorderMailbox::finish() {
    const std::lock_guard lock(mutex_);
    finished_ = true;
    changed_.notify_all();
}

void RecorderMailbox::wake() const {
    const std::uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof(one));
}

}  // namespace flamewire::agent
