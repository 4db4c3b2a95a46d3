#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <span>

namespace flamewire {

Result<UniqueFd> open_read(const std::string& path) {
    const int fd = System::current().open(path, 0);
    if (fd < 0) return fail_errno("open " + path, -fd);
    return UniqueFd(fd);
}

Result<std::string> read_file(const std::string& path, std::size_t limit) {
    constexpr std::size_t chunk = 64 * 1024;
    UniqueFd fd = TRY(open_read(path));
    std::string content;
    for (;;) {
        const std::size_t used = content.size();
        if (used > limit) return fail(ErrorCode::too_large, path + " is larger than the limit for such a file");
        content.resize(used + chunk);
        const std::ptrdiff_t got =
            System::current().read(fd.get(), std::as_writable_bytes(std::span(content).subspan(used)));
        if (got == -EINTR) {
            content.resize(used);
            continue;
        }
        if (got < 0) return fail_errno("read " + path, static_cast<int>(-got));
        content.resize(used + static_cast<std::size_t>(got));
        if (got == 0) return content;
    }
}

Result<std::string> read_range(int fd, std::uint64_t offset, std::size_t size) {
    std::string content(size, '\0');
    std::size_t done = 0;
    while (done < size) {
        const std::ptrdiff_t got =
            System::current().read_at(fd, offset + done, std::as_writable_bytes(std::span(content).subspan(done)));
        if (got == -EINTR) continue;
        if (got < 0) return fail_errno("read", static_cast<int>(-got));
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
    FileStatus facts;
    if (System::current().status(path, true, facts) != 0) return {};
    return facts;
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

Result<bool> make_private_folders(const std::string& path) {
    for (std::size_t end = path.find_first_not_of('/'); end < path.size();) {
        end = std::min(path.find('/', end), path.size());
        const std::string folder = path.substr(0, end);
        end = std::min(path.find_first_not_of('/', end), path.size());
        if (::mkdir(folder.c_str(), 0700) == 0) continue;
        const int error = errno;
        const auto status = file_status(folder);
        if (!status || !status->directory)
            return fail_errno("cannot create " + folder, error == EEXIST ? ENOTDIR : error);
    }
    return true;
}

void sync_directory(const std::string& path) {
    const UniqueFd fd(::open(path.empty() ? "." : path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd) (void)::fsync(fd.get());
}

}  // namespace flamewire
