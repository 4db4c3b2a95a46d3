#include "base/system.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include "base/fd.h"
#include "base/rooted_path.h"

namespace flamewire {
namespace {

constexpr std::int64_t ns_per_second = 1'000'000'000;

thread_local System* in_use = nullptr;

// openat2(2), Linux 5.6. Declared here because older toolchains lack <linux/openat2.h>.
struct OpenHow {
    std::uint64_t flags = 0, mode = 0, resolve = 0;
};
constexpr long openat2_number = 437;  // on every architecture
constexpr std::uint64_t resolve_no_magiclinks = 0x02, resolve_in_root = 0x10;

std::int64_t ns_of(const timespec& time) { return std::int64_t{time.tv_sec} * ns_per_second + time.tv_nsec; }

std::int64_t read_clock(clockid_t clock) {
    timespec now{};
    ::clock_gettime(clock, &now);
    return ns_of(now);
}

FileStatus facts_of(const struct stat& status) {
    return {.device = status.st_dev,
            .inode = status.st_ino,
            .size_bytes = static_cast<std::uint64_t>(status.st_size),
            .modified_ns = ns_of(status.st_mtim),
            .changed_ns = ns_of(status.st_ctim),
            .user = status.st_uid,
            .regular = S_ISREG(status.st_mode),
            .directory = S_ISDIR(status.st_mode),
            .others_may_read = (status.st_mode & S_IROTH) != 0};
}

// The kernel stamps samples with its own CLOCK_MONOTONIC, which a time namespace (time_namespaces(7)) shifts for us.
// Returns that shift from the line "monotonic SECONDS NANOSECONDS"; 0 before Linux 5.6.
std::int64_t namespace_offset_ns() {
    const UniqueFd file(::open("/proc/self/timens_offsets", O_RDONLY | O_CLOEXEC));
    std::array<char, 256> buffer;
    const ssize_t got = file ? ::read(file.get(), buffer.data(), buffer.size()) : -1;
    constexpr std::string_view name = "monotonic ";
    const std::string_view text(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (!text.starts_with(name)) return 0;
    const char* at = text.data() + name.size();
    const char* const end = text.data() + text.size();
    std::array<std::int64_t, 2> parts{};
    for (std::int64_t& part : parts) {
        while (at != end && *at == ' ') ++at;
        at = std::from_chars(at, end, part).ptr;
    }
    return parts[0] * ns_per_second + parts[1];
}

}  // namespace

System& System::current() {
    static System machine;
    return in_use != nullptr ? *in_use : machine;
}

UseSystem::UseSystem(System* used) : before_(in_use) { in_use = used; }
UseSystem::~UseSystem() { in_use = before_; }

int System::open(const std::string& path, int flags) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags);
    return fd < 0 ? -errno : fd;
}

int System::open_same(const std::string& path, int flags, const FileStatus& file) {
    const UniqueFd found(::open(path.c_str(), O_PATH | O_CLOEXEC | (flags & O_NOFOLLOW)));
    if (!found) return -errno;
    FileStatus now;
    if (const int error = System::status_of(found.get(), now); error != 0) return error;
    if (now.device != file.device || now.inode != file.inode) return -ESTALE;
    return System::open("/proc/self/fd/" + std::to_string(found.get()), flags & ~O_NOFOLLOW);
}

int System::open_in_root(const std::string& root, const std::string& path, int flags) {
    flags |= O_RDONLY | O_CLOEXEC | O_NOFOLLOW;
    const UniqueFd directory(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!directory) return -errno;
    const OpenHow how{static_cast<std::uint64_t>(flags), 0, resolve_in_root | resolve_no_magiclinks};
    const long opened = ::syscall(openat2_number, directory.get(), path.c_str(), &how, sizeof(how));
    if (opened >= 0) return static_cast<int>(opened);
    if (errno != ENOSYS && errno != EPERM) return -errno;  // EPERM: seccomp filters of old containers
    const std::size_t name = path.rfind('/');
    if (name == std::string::npos) return -ENOENT;
    const std::string folder = path_in_root(root, std::string_view(path).substr(0, name + 1));
    if (folder.empty()) return -ELOOP;
    const int fd = ::open((folder + path.substr(name)).c_str(), flags);
    return fd < 0 ? -errno : fd;
}

std::ptrdiff_t System::read(int fd, std::span<std::byte> bytes) {
    const ssize_t got = ::read(fd, bytes.data(), bytes.size());
    return got < 0 ? -errno : got;
}

std::ptrdiff_t System::read_at(int fd, std::uint64_t offset, std::span<std::byte> bytes) {
    const ssize_t got = ::pread(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    return got < 0 ? -errno : got;
}

int System::status_of(int fd, FileStatus& facts) {
    struct stat status{};
    if (::fstat(fd, &status) != 0) return -errno;
    facts = facts_of(status);
    return 0;
}

int System::status(const std::string& path, bool follow_link, FileStatus& facts) {
    struct stat status{};
    if ((follow_link ? ::stat(path.c_str(), &status) : ::lstat(path.c_str(), &status)) != 0) return -errno;
    facts = facts_of(status);
    return 0;
}

std::ptrdiff_t System::read_link(const std::string& path, std::span<char> target) {
    const ssize_t got = ::readlink(path.c_str(), target.data(), target.size());
    return got < 0 ? -errno : got;
}

int System::list(const std::string& path, std::size_t most, std::vector<std::string>& names) {
    DIR* folder = ::opendir(path.c_str());
    if (folder == nullptr) return -errno;
    while (names.size() < most) {
        const dirent* entry = ::readdir(folder);
        if (entry == nullptr) break;
        names.emplace_back(entry->d_name);
    }
    ::closedir(folder);
    return 0;
}

std::ptrdiff_t System::read_memory(std::uint32_t pid, std::size_t word_bytes, std::span<const std::uint64_t> addresses,
                                   std::span<std::byte> bytes) {
    std::vector<iovec> remote(addresses.size());
    for (std::size_t i = 0; i < addresses.size(); ++i)
        // An address of another process. NOLINTNEXTLINE(performance-no-int-to-ptr)
        remote[i] = {reinterpret_cast<void*>(static_cast<std::uintptr_t>(addresses[i])), word_bytes};
    const iovec local{bytes.data(), bytes.size()};
    const ssize_t got = ::process_vm_readv(static_cast<pid_t>(pid), &local, 1, remote.data(), remote.size(), 0);
    return got < 0 ? -errno : got;
}

std::int64_t System::now(Clock clock) {
    static const std::int64_t offset_ns = namespace_offset_ns();
    switch (clock) {
        case Clock::monotonic: return read_clock(CLOCK_MONOTONIC) - offset_ns;
        case Clock::realtime: return read_clock(CLOCK_REALTIME);
        case Clock::boottime: return read_clock(CLOCK_BOOTTIME);
        case Clock::process_cpu: return read_clock(CLOCK_PROCESS_CPUTIME_ID);
        case Clock::thread_cpu: return read_clock(CLOCK_THREAD_CPUTIME_ID);
    }
    return 0;
}

std::uint64_t System::constant(Constant which) {
    const auto configured = [](int name) { return static_cast<std::uint64_t>(std::max(::sysconf(name), 0L)); };
    switch (which) {
        case Constant::page_bytes: return configured(_SC_PAGESIZE);
        case Constant::word_bytes: return sizeof(void*);
        case Constant::ticks_per_second: return std::max<std::uint64_t>(configured(_SC_CLK_TCK), 1);
        case Constant::memory_pages: return configured(_SC_PHYS_PAGES);
        case Constant::online_cpus: return std::max<std::uint64_t>(configured(_SC_NPROCESSORS_ONLN), 1);
        case Constant::own_pid: return static_cast<std::uint64_t>(::getpid());
        case Constant::effective_user: return ::geteuid();
    }
    return 0;
}

std::string System::input(std::string_view, std::string value) { return value; }

}  // namespace flamewire
