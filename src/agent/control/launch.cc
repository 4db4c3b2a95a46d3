// Two pipes around fork and exec. Between fork and exec, the child calls only async-signal-safe functions.
#include "agent/control/launch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

namespace flamewire::agent {

namespace {

struct Pipe {
    UniqueFd read, write;
};

Result<Pipe> make_pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail_errno("make a pipe", errno);
    return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

ssize_t read_retry(int fd, void* bytes, std::size_t size) {
    ssize_t got = 0;
    do {
        got = ::read(fd, bytes, size);
    } while (got < 0 && errno == EINTR);
    return got;
}

[[noreturn]] void run_child(const std::vector<char*>& argv, int go, int failure) {
    char byte = 0;
    if (read_retry(go, &byte, 1) != 1) ::_exit(127);  // the agent gave up
    ::execvp(argv[0], argv.data());
    const int reason = errno;
    (void)!::write(failure, &reason, sizeof(reason));
    ::_exit(127);
}

std::uint64_t nanoseconds(const timeval& time) {
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_usec) * 1'000;
}

}  // namespace

Result<LaunchedCommand> LaunchedCommand::prepare(const std::vector<std::string>& words) {
    std::vector<char*> argv;
    argv.reserve(words.size() + 1);
    for (const std::string& word : words)
        argv.push_back(const_cast<char*>(word.c_str()));  // required by exec's signature, but not written
    argv.push_back(nullptr);
    Pipe go = TRY(make_pipe());
    Pipe failure = TRY(make_pipe());
    const pid_t pid = ::fork();
    if (pid < 0) return fail_errno("fork", errno);
    if (pid == 0) {
        go.write.reset();  // otherwise the child's own copy would keep the pipe open
        run_child(argv, go.read.get(), failure.write.get());
    }
    return LaunchedCommand(pid, words.front(), std::move(go.write), std::move(failure.read));
}

LaunchedCommand::LaunchedCommand(LaunchedCommand&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      name_(std::move(other.name_)),
      go_(std::move(other.go_)),
      failure_(std::move(other.failure_)),
      exit_code_(other.exit_code_) {}

LaunchedCommand::~LaunchedCommand() {
    if (pid_ < 0 || !go_) return;
    go_.reset();
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
}

Result<bool> LaunchedCommand::exec() {
    const char byte = 1;
    if (::write(go_.get(), &byte, 1) != 1) return fail_errno(fmt::format("cannot run '{}'", name_), errno);
    go_.reset();
    int reason = 0;
    const ssize_t got = read_retry(failure_.get(), &reason, sizeof(reason));
    failure_.reset();
    if (got == static_cast<ssize_t>(sizeof(reason))) {
        while (!poll_exit() && errno != ECHILD) ::usleep(1000);
        return fail_errno(fmt::format("cannot run '{}'", name_), reason);
    }
    return true;
}

std::optional<int> LaunchedCommand::poll_exit() {
    if (exit_code_ || pid_ < 0) return exit_code_;
    int status = 0;
    rusage used{};
    if (::wait4(pid_, &status, WNOHANG, &used) != pid_) return std::nullopt;
    user_ns_ = nanoseconds(used.ru_utime);
    system_ns_ = nanoseconds(used.ru_stime);
    exit_code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return exit_code_;
}

void LaunchedCommand::signal(int number) const {
    if (pid_ > 0 && !exit_code_) (void)::kill(pid_, number);
}

}  // namespace flamewire::agent
