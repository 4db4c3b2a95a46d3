#include "server/source/toolchain.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <vector>

#include "base/fd.h"

namespace flamewire::server {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t max_prefix_bytes = 1024;
constexpr std::size_t max_printed_bytes = 4096;  // a path

struct Printed {
    std::string text;
    bool whole = false;  // exited on its own in time, with status 0
    int status = 0;
};

// Descriptors and signals of a child that inherits only the pipe.
class ChildSetup {
public:
    explicit ChildSetup(int output) {
        ::posix_spawn_file_actions_init(&actions_);
        ::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        ::posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
        ::posix_spawn_file_actions_addopen(&actions_, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
        ::posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1);
        ::posix_spawnattr_init(&attributes_);
        sigset_t all;
        sigset_t none;
        sigfillset(&all);
        sigemptyset(&none);
        ::posix_spawnattr_setsigdefault(&attributes_, &all);
        ::posix_spawnattr_setsigmask(&attributes_, &none);
        // Its own process group: the compiler is often a script, and killing the group also ends what it started.
        ::posix_spawnattr_setpgroup(&attributes_, 0);
        ::posix_spawnattr_setflags(&attributes_,
                                   POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    }
    ~ChildSetup() {
        ::posix_spawn_file_actions_destroy(&actions_);
        ::posix_spawnattr_destroy(&attributes_);
    }
    ChildSetup(const ChildSetup&) = delete;
    ChildSetup& operator=(const ChildSetup&) = delete;

    [[nodiscard]] const posix_spawn_file_actions_t* actions() const { return &actions_; }
    [[nodiscard]] const posix_spawnattr_t* attributes() const { return &attributes_; }

private:
    posix_spawn_file_actions_t actions_{};
    posix_spawnattr_t attributes_{};
};

int left_until(std::chrono::steady_clock::time_point until) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
}

// Reads until the end of the output or until `until`. True at the end of the output.
bool read_until(int fd, std::chrono::steady_clock::time_point until, std::string& text) {
    std::array<char, 512> buffer{};
    while (true) {
        pollfd waited{fd, POLLIN, 0};
        const int ready = ::poll(&waited, 1, left_until(until));
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) return false;
        const ssize_t count = ::read(fd, buffer.data(), buffer.size());
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return count == 0;
        if (text.size() + static_cast<std::size_t>(count) > max_printed_bytes) return false;
        text.append(buffer.data(), static_cast<std::size_t>(count));
    }
}

// Waits for the child. False if it had to be killed.
bool reap(pid_t child, std::chrono::steady_clock::time_point until, int& status) {
    while (true) {
        const pid_t ended = ::waitpid(child, &status, WNOHANG);
        if (ended == child) return true;
        if (ended < 0 && errno != EINTR) return false;
        const int left = left_until(until);
        if (left == 0) break;
        (void)::poll(nullptr, 0, std::min(left, 5));
    }
    ::kill(-child, SIGKILL);
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return false;
}

std::unexpected<Error> cannot_start(const std::string& compiler, int error) {
    return fail(ErrorCode::not_found,
                fmt::format("{:.500} cannot be started: {}; give the prefix with its folder, as in "
                            "/opt/sdk/bin/arm-linux-gnueabihf-, or the sysroot itself with --sysroot",
                            compiler, std::generic_category().message(error)));
}

// Whether only root and the server's user can change this file or replace it.
bool is_ours(const fs::path& path) {
    for (fs::path at = path; !at.empty(); at = at.parent_path()) {
        struct stat status{};
        if (::lstat(at.c_str(), &status) != 0 || (status.st_uid != 0 && status.st_uid != ::geteuid())) return false;
        const bool kept = S_ISLNK(status.st_mode) || (S_ISDIR(status.st_mode) && (status.st_mode & S_ISVTX) != 0);
        if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0 && !kept) return false;
        if (at == at.root_path()) return true;
    }
    return false;
}

Result<Printed> ask(const std::string& compiler, std::chrono::milliseconds timeout) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("pipe", errno);
    const UniqueFd in(ends[0]);
    UniqueFd out(ends[1]);
    std::string program = compiler;
    std::string argument = "-print-sysroot";
    char* const words[] = {program.data(), argument.data(), nullptr};
    pid_t child = -1;
    {
        const ChildSetup setup(out.get());
        const int error = ::posix_spawnp(&child, program.c_str(), setup.actions(), setup.attributes(), words, environ);
        if (error != 0) return cannot_start(compiler, error);
    }
    out.reset();
    Printed printed;
    const auto until = std::chrono::steady_clock::now() + timeout;
    const bool read = read_until(in.get(), until, printed.text);
    const bool ended = reap(child, read ? until : std::chrono::steady_clock::now(), printed.status);
    printed.whole = read && ended && WIFEXITED(printed.status) && WEXITSTATUS(printed.status) == 0;
    while (printed.text.ends_with('\n') || printed.text.ends_with('\r')) printed.text.pop_back();
    return printed;
}

bool is_folder(const fs::path& path) {
    std::error_code ignored;
    return fs::is_directory(path, ignored);
}

// The usual sysroots for a prefix such as "/opt/x/bin/arm-linux-gnueabihf-": beside the compiler, and Debian's
// /usr/TRIPLET.
std::string usual_place(std::string_view prefix) {
    const fs::path path(prefix);
    std::string triplet = path.filename().string();
    while (triplet.ends_with('-')) triplet.pop_back();
    if (triplet.find_first_not_of('.') == std::string::npos) return {};
    std::vector<fs::path> places;
    if (path.has_parent_path()) {
        const fs::path root = path.parent_path().parent_path();
        places = {root / triplet / "sysroot", root / triplet / "libc", root / "sysroot"};
    }
    places.push_back(fs::path("/usr") / triplet);
    for (const fs::path& place : places)
        if (is_folder(place)) return place.string();
    return {};
}

std::string what_it_did(const Printed& printed) {
    if (WIFEXITED(printed.status) && WEXITSTATUS(printed.status) != 0)
        return fmt::format("ends with status {}", WEXITSTATUS(printed.status));
    if (!printed.whole) return "does not answer in time, or its answer is too long";
    return printed.text.empty() ? "names none" : fmt::format("names {:.500}", printed.text);
}

}  // namespace

Result<bool> may_run_toolchain(std::string_view prefix) {
    if (prefix.find('/') == std::string_view::npos) return true;
    const fs::path compiler(std::string(prefix) + "gcc");
    std::error_code error;
    const fs::path real = fs::canonical(compiler, error);
    if (error) return cannot_start(compiler.string(), error.value());
    if (is_ours(compiler.lexically_normal()) && is_ours(real)) return true;
    return fail(
        ErrorCode::permission,
        fmt::format("{:.500} is not asked for its sysroot, as others than root and the server's user can change "
                    "it: start the server with --toolchain-prefix, or give the sysroot itself",
                    compiler.string()));
}

Result<std::string> sysroot_of_toolchain(std::string_view prefix, std::chrono::milliseconds timeout) {
    if (prefix.empty() || prefix.size() > max_prefix_bytes || prefix.find('\0') != std::string_view::npos)
        return fail(ErrorCode::invalid, "a toolchain prefix is a path and the start of a name, as in /opt/x/bin/arm-");
    const std::string compiler = std::string(prefix) + "gcc";
    const Printed printed = TRY(ask(compiler, timeout));
    if (printed.whole && printed.text.starts_with('/') && is_folder(printed.text)) {
        std::string normal = fs::path(printed.text).lexically_normal().string();
        if (normal != "/") return normal;
    }
    if (std::string place = usual_place(prefix); !place.empty()) return place;
    return fail(ErrorCode::not_found,
                fmt::format("{:.500} -print-sysroot {}, and no sysroot is beside it: give it with --sysroot DIR",
                            compiler, what_it_did(printed)));
}

}  // namespace flamewire::server
