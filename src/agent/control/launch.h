// `-- CMD ARGS`: a child that is forked first, waits while events are opened on it, and then executes the command, so
// that sampling starts at its exec. Fork it before the agent creates threads or sets signal masks and limits, because
// the command must not inherit them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace flamewire::agent {

class LaunchedCommand {
public:
    // `argv` must not be empty.
    static Result<LaunchedCommand> prepare(const std::vector<std::string>& argv);
    LaunchedCommand(LaunchedCommand&& other) noexcept;
    LaunchedCommand& operator=(LaunchedCommand&&) = delete;
    LaunchedCommand(const LaunchedCommand&) = delete;
    LaunchedCommand& operator=(const LaunchedCommand&) = delete;
    // A child that has not executed the command exits, too.
    ~LaunchedCommand();

    [[nodiscard]] std::uint32_t pid() const { return static_cast<std::uint32_t>(pid_); }
    // Lets the child exec. The error of a failed exec has its errno ("cannot run 'x': No such file or directory").
    Result<bool> exec();
    // Its exit code after its exit: the returned code, or 128 + signal.
    std::optional<int> poll_exit();
    // After its exit: CPU time of the command and of children that it waited for.
    [[nodiscard]] std::uint64_t user_ns() const { return user_ns_; }
    [[nodiscard]] std::uint64_t system_ns() const { return system_ns_; }
    void signal(int number) const;

private:
    LaunchedCommand(int pid, std::string name, UniqueFd go, UniqueFd failure)
        : pid_(pid), name_(std::move(name)), go_(std::move(go)), failure_(std::move(failure)) {}
    int pid_ = -1;
    std::string name_;
    UniqueFd go_;       // one byte: exec now; closed: exit
    UniqueFd failure_;  // close-on-exec in the child: errno of exec, or end of file if exec succeeded
    std::optional<int> exit_code_;
    std::uint64_t user_ns_ = 0, system_ns_ = 0;
};

}  // namespace flamewire::agent
