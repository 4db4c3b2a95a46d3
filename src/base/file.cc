#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

namespace flamewire {

Result<UniqueFd> open_read(const std::string& path) {
    UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return fail_errno("open " + path, errno);
    return fd;
}

Result<std::string> read_file(const std::string& path, std::size_t limit) {
    constexpr std::size_t chunk = 64 * 1024;
    UniqueFd fd = TRY(open_read(path));
    std::string content;
    for (;;) {
        const std::size_t used = content.size();
        if (used > limit) return fail(ErrorCode::too_large, path + " is larger than the limit for such a file");
        content.resize(used + chunk);
        const ssize_t got = ::read(fd.get(), content.data() + used, chunk);
        if (got < 0 && errno == EINTR) {
            content.resize(used);
            continue;
        }
        if (got < 0) return fail_errno("read " + path, errno);
        content.resize(used + static_cast<std::size_t>(got));
        if (got == 0) return content;
    }
}

Result<std::string> read_range(int fd, std::uint64_t offset, std::size_t size) {
    std::string content(size, '\0');
    std::size_t done = 0;
    while (done < size) {
        const ssize_t got = ::pread(fd, content.data() + done, size - done, static_cast<off_t>(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail_errno("read", errno);
        if (got == 0) break;
        done += static_cast<std::size_t>(got);
    }
    content.resize(done);
    return content;
}

Result<std::size_t> write_all(int fd, Bytes bytes) {
    std::size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t put = ::write(fd, bytes.data() + done, bytes.size() - done);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return fail_errno("write", errno);
        done += static_cast<std::size_t>(put);
    }
    return done;
}

std::optional<FileStatus> file_status(const std::string& path) {
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0) return {};
    const auto ns = [](const timespec& time) { return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; };
    return FileStatus{static_cast<std::uint64_t>(status.st_size), ns(status.st_mtim), ns(status.st_ctim)};
}

Result<bool> replace_file(const std::string& path, Bytes bytes, Durable durable, unsigned mode) {
    const std::string temporary = path + ".new";
    UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
    if (!fd) return fail_errno("cannot write " + path, errno);
    int error = 0;
    if (const auto written = write_all(fd.get(), bytes); !written) error = written.error().errno_value;
    if (error == 0 && durable == Durable::yes && ::fsync(fd.get()) != 0) error = errno;
    fd.reset();
    if (error == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
    if (error != 0) {
        (void)::unlink(temporary.c_str());
        return fail_errno("cannot write " + path, error);
    }
    if (durable == Durable::yes) sync_directory(path.substr(0, path.rfind('/') + 1));
    return true;
}

void sync_directory(const std::string& path) {
    const UniqueFd fd(::open(path.empty() ? "." : path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd) (void)::fsync(fd.get());
}

}  // namespace flamewire
