#include "agent/perf/kernel.h"

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "base/file.h"

namespace flamewire::agent {
namespace {

// Descriptors that events leave for other uses: the link, the output, files of /proc and executables. Otherwise a
// target with many threads under a low limit would leave an agent that can neither read nor send anything.
constexpr rlim_t kept_descriptors = 64;

// The kernel assigns the lowest free number, so the number shows how many are left.
bool is_reserved(int fd) {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return false;
    const rlim_t kept = std::min(kept_descriptors, limit.rlim_cur / 2);
    return static_cast<rlim_t>(fd) >= limit.rlim_cur - kept;
}

int open_flagged(perf_event_attr& attr, int pid, int cpu, int leader, unsigned long flags) {
    attr.size = sizeof attr;
    const long opened = ::syscall(SYS_perf_event_open, &attr, pid, cpu, leader, flags | PERF_FLAG_FD_CLOEXEC);
    if (opened < 0) return -errno;
    const int fd = static_cast<int>(opened);
    if (!is_reserved(fd)) return fd;
    ::close(fd);
    return -EMFILE;
}

int open_in_group(perf_event_attr& attr, pid_t pid, int cpu, int leader) {
    return open_flagged(attr, pid, cpu, leader, 0);
}

int open_in_cgroup(perf_event_attr& attr, int folder, int cpu, int leader) {
    return open_flagged(attr, folder, cpu, leader, PERF_FLAG_PID_CGROUP);
}

int open_event(perf_event_attr& attr, pid_t pid, int cpu) { return open_in_group(attr, pid, cpu, -1); }

int control(int fd, unsigned long request, unsigned long argument) {
    const int answer = ::ioctl(fd, request, argument);
    return answer < 0 ? -errno : answer;
}

int event_id(int fd, std::uint64_t& id) {
    const int answer = ::ioctl(fd, PERF_EVENT_IOC_ID, &id);
    return answer < 0 ? -errno : 0;
}

int read_values(int fd, std::span<std::uint64_t> values) {
    const ssize_t got = ::read(fd, values.data(), values.size_bytes());
    return got < 0 ? -errno : static_cast<int>(static_cast<std::size_t>(got) / sizeof(std::uint64_t));
}

void* map_ring(int fd, std::size_t size, int& error) {
    void* address = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (address != MAP_FAILED) return address;
    error = -errno;
    return nullptr;
}

std::uint64_t head_of(const perf_event_mmap_page& ring) {
    // Acquire order pairs with the kernel's store of data_head after it wrote the records: bytes below this head are
    // complete if they are read after this load.
    return __atomic_load_n(&ring.data_head, __ATOMIC_ACQUIRE);
}

int wait_for(std::span<pollfd> files, int timeout_ms) { return ::poll(files.data(), files.size(), timeout_ms); }

std::optional<std::int64_t> read_sysctl(const std::string& name) {
    const auto text = read_file("/proc/sys/kernel/" + name, 4096);
    std::int64_t value = 0;
    if (!text || std::from_chars(text->data(), text->data() + text->size(), value).ec != std::errc{})
        return std::nullopt;
    return value;
}

}  // namespace

const Kernel& real_kernel() {
    static const Kernel kernel{
        open_event,  control,       event_id,       read_values, map_ring, [](int fd) { ::close(fd); },
        read_sysctl, open_in_group, open_in_cgroup, head_of,     wait_for};
    return kernel;
}

}  // namespace flamewire::agent
