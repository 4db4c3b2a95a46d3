// uname, /proc, getrandom and the process setup. Nothing here runs per sample.
#include "agent/machine.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>

#include "base/clock.h"
#include "base/descriptor_table.h"
#include "base/file.h"

namespace flamewire::agent {
namespace {

constexpr int polite_nice = 5;
int initial_nice = polite_nice;
// Events of 1,000 threads on 2 CPUs need about 10,000.
constexpr std::size_t expected_files = 16'384;

}  // namespace

const char* build_architecture() {
#if defined(__x86_64__)
    return "x86_64";
#elif defined(__aarch64__)
    return std::endian::native == std::endian::little ? "aarch64" : "aarch64_be";
#elif defined(__arm__)
    return std::endian::native == std::endian::little ? "armv7l" : "armv7b";
#elif defined(__s390x__)
    return "s390x";
#elif defined(__riscv)
    return "riscv64";
#else
    return "unknown";
#endif
}

Machine describe_machine() {
    Machine machine;
    utsname names{};
    if (::uname(&names) == 0) {
        machine.host = names.nodename;
        machine.arch = names.machine;
        machine.kernel_release = names.release;
    }
    if (auto id = read_file("/proc/sys/kernel/random/boot_id", 256)) {
        machine.boot_id = std::move(*id);
        while (!machine.boot_id.empty() && machine.boot_id.back() == '\n') machine.boot_id.pop_back();
    }
    machine.page_size = static_cast<std::uint32_t>(::sysconf(_SC_PAGESIZE));
    machine.cpus = static_cast<std::uint32_t>(::sysconf(_SC_NPROCESSORS_ONLN));
    machine.little_endian = std::endian::native == std::endian::little;
    // The stack is near the upper end of the address space, so the address of a local variable has the highest bit set.
    // A 32-bit program cannot determine the limit of 64-bit processes.
    if constexpr (sizeof(void*) == sizeof(std::uint64_t))
        machine.address_bits = static_cast<std::uint8_t>(
            std::clamp(static_cast<int>(std::bit_width(reinterpret_cast<std::uintptr_t>(&machine))), 36, 48));
    return machine;
}

void fill_random(void* bytes, std::size_t size) {
    std::size_t done = 0;
    while (done < size) {
        const ssize_t got = ::getrandom(static_cast<char*>(bytes) + done, size - done, 0);
        if (got > 0) {
            done += static_cast<std::size_t>(got);
            continue;
        }
        if (got < 0 && errno == EINTR) continue;
        // The kernel lacks getrandom. The ids only have to differ between runs on one machine.
        const std::uint64_t seed = monotonic_ns() ^ static_cast<std::uint64_t>(realtime_ns()) ^
                                   (static_cast<std::uint64_t>(::getpid()) << 32U) ^ done;
        const std::size_t piece = size - done < sizeof(seed) ? size - done : sizeof(seed);
        std::memcpy(static_cast<char*>(bytes) + done, &seed, piece);
        done += piece;
    }
}

ResidentMemory::ResidentMemory()
    : fd_(::open("/proc/self/statm", O_RDONLY | O_CLOEXEC)),
      page_size_(static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE))) {}

ResidentMemory::~ResidentMemory() {
    if (fd_ >= 0) ::close(fd_);
}

std::uint64_t ResidentMemory::bytes() const {
    std::array<char, 128> text{};
    const ssize_t got = fd_ < 0 ? -1 : ::pread(fd_, text.data(), text.size(), 0);
    if (got <= 0) return 0;
    const char* const end = text.data() + got;
    const char* space = static_cast<const char*>(std::memchr(text.data(), ' ', static_cast<std::size_t>(got)));
    std::uint64_t pages = 0;  // the second number of the line
    if (space != nullptr) std::from_chars(space + 1, end, pages);
    return pages * page_size_;
}

void be_polite() {
    errno = 0;
    const int now = ::getpriority(PRIO_PROCESS, 0);
    if (errno == 0 && now < polite_nice) {
        // The limit outlasts the loss of capabilities.
        const auto floor = static_cast<rlim_t>(20 - now);
        const rlimit priority{floor, floor};
        (void)::setrlimit(RLIMIT_NICE, &priority);
        (void)::setpriority(PRIO_PROCESS, 0, polite_nice);
        initial_nice = now;
    }
    prepare_descriptors(expected_files);
    struct sigaction ignore{};
    ignore.sa_handler = SIG_IGN;
    (void)::sigaction(SIGPIPE, &ignore, nullptr);
}

void boost_priority(bool boost) {
    if (initial_nice < polite_nice) (void)::setpriority(PRIO_PROCESS, 0, boost ? initial_nice : polite_nice);
}

}  // namespace flamewire::agent
