// Hands commands and requests of other threads to the sampler thread, and its results back. The sampler waits on a
// descriptor that becomes readable when there is something new.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "agent/recording/recorder_command.h"
#include "base/fd.h"
#include "base/result.h"
#include "wire/batch.h"

namespace flamewire::agent {

class RecorderMailbox {
public:
    // Call it first. busy: too many open files.
    Result<bool> open();

    // Other threads. Recorder describes what they do.
    Result<bool> execute(RecorderCommand command);
    void post(RecorderCommand command);
    void request_stop(std::string reason, std::int32_t exit_code);
    void request_epoch() { epoch_wanted_ = true; }
    // Waits for opened(), and returns its result.
    Result<bool> wait_until_opened();
    // Why the recording ended; empty while it runs.
    [[nodiscard]] std::optional<std::string> end_reason() const;

    // The sampler thread.
    void opened(Result<bool> result);
    [[nodiscard]] int wake_fd() const { return wake_.get(); }
    void clear_wake() const;
    [[nodiscard]] std::optional<RecorderCommand> take_command();
    void answer(Result<bool> result);
    // True if a new epoch was requested since the last call.
    bool take_epoch() { return epoch_wanted_.exchange(false); }
    // The recording ends by itself, unless a stop was requested before.
    void end(std::string reason);
    // True: leave the loop now. Records a requested stop in a capture.
    [[nodiscard]] bool must_stop() const;
    [[nodiscard]] wire::End end_of_recording() const;
    // Nothing answers commands from now on.
    void finish();

private:
    void wake() const;

    UniqueFd wake_;
    std::atomic<bool> epoch_wanted_{false};
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::optional<Result<bool>> opened_;
    std::optional<RecorderCommand> command_;  // pending
    std::optional<Result<bool>> command_result_;
    bool stop_wanted_ = false, stop_requested_ = false, finished_ = false;
    std::string end_reason_;
    std::int32_t end_code_ = 0;
};

}  // namespace flamewire::agent
