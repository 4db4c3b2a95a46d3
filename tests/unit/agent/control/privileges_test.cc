// What the kernel refuses to a process that dropped its privileges. Each case runs in a child process, because
// privileges cannot be regained.
#include "agent/control/privileges.h"

#include <catch2/catch.hpp>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>

#include "base/file.h"

using namespace flamewire;
using namespace flamewire::agent;

namespace {

struct Ended {
    int code = -1, signal = 0;
};

Ended in_child(const std::function<int()>& body) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(body());
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    if (WIFSIGNALED(status)) return {-1, WTERMSIG(status)};
    return {WEXITSTATUS(status), 0};
}

// A number from /proc/self/status, in base 16 or 10.
std::uint64_t own_status(const std::string& name, int base) {
    const std::string text = read_file("/proc/self/status").value_or("");
    const std::size_t at = text.find("\n" + name + ":");
    return at == std::string::npos ? ~std::uint64_t{0} : std::stoull(text.substr(at + name.size() + 2), nullptr, base);
}

Ended restricted(const std::function<int()>& body) {
    return in_child([&] {
        if (!restrict_system_calls()) return 99;
        return body();
    });
}

constexpr std::uint64_t bit(unsigned capability) { return std::uint64_t{1} << capability; }

}  // namespace

TEST_CASE("calls that sampling needs still work") {
    const Ended ended = restricted([] {
        int step = 1;
        std::thread thread([&] { step = 2; });
        thread.join();
        if (step != 2) return 1;
        if (!read_file("/proc/self/maps")) return 2;
        return own_status("Seccomp", 10) == 2 && own_status("NoNewPrivs", 10) == 1 ? 0 : 4;
    });
    CHECK(ended.signal == 0);
    CHECK(ended.code == 0);
}

TEST_CASE("calls that only an intruder needs end the process") {
    const auto killed_by = [](const std::function<int()>& body) {
        const Ended ended = restricted(body);
        return ended.signal == SIGSYS;
    };
    const char* const argv[] = {"/bin/true", nullptr};
    CHECK(killed_by([&] { return ::execve(argv[0], const_cast<char**>(argv), nullptr); }));
    CHECK(killed_by([] { return static_cast<int>(::fork()); }));
    CHECK(killed_by([] { return static_cast<int>(::syscall(SYS_ptrace, 0, 0, 0, 0)); }));
    CHECK(killed_by([] { return ::mount("x", "/", "tmpfs", 0, nullptr); }));
    CHECK(killed_by([] { return static_cast<int>(::syscall(SYS_setuid, 0)); }));
    CHECK(killed_by([] { return static_cast<int>(::syscall(SYS_bpf, 0, nullptr, 0)); }));
    CHECK(killed_by([] { return static_cast<int>(::syscall(SYS_memfd_create, "x", 0)); }));
#if defined(__x86_64__)
    // The same calls with the numbers of x32 and of 32-bit programs.
    CHECK(killed_by([] { return static_cast<int>(::syscall(0x40000000 + 520, nullptr, nullptr, nullptr)); }));
    const auto call_of_i386 = [] {
        ::signal(SIGSEGV, SIG_DFL);
        int result = 20;  // getpid
        asm volatile("int $0x80" : "+a"(result)::"memory");
        return result > 0 ? 0 : 1;
    };
    // Without IA32 emulation, the instruction faults.
    if (in_child(call_of_i386).signal == SIGSEGV)
        WARN("NOT tested: this kernel has no system calls of 32-bit programs");
    else
        CHECK(killed_by(call_of_i386));
#endif
    // An unrestricted process is not killed.
    CHECK(in_child([] { return ::fork() >= 0 ? 0 : 1; }).code == 0);
}

TEST_CASE("an unknown call is refused") {
    const Ended ended = restricted([] {
        char value[8];
        return ::getxattr("/", "user.none", value, sizeof(value)) < 0 ? errno : 0;
    });
    CHECK(ended.code == ENOSYS);
}

TEST_CASE("capabilities that sampling does not use are dropped, also for threads") {
    if (::geteuid() != 0) {
        WARN("NOT tested: only root has privileges to drop");
        return;
    }
    const auto effective_after = [](const Needs& needs) {
        int ends[2];
        REQUIRE(::pipe(ends) == 0);
        const Ended ended = in_child([&] {
            const auto kept = drop_capabilities(needs);
            std::uint64_t of_thread = 0;
            std::thread thread([&] { of_thread = own_status("CapEff", 16); });
            thread.join();
            if (!kept || own_status("CapPrm", 16) != *kept || own_status("CapEff", 16) != *kept || of_thread != *kept)
                return 1;
            if (own_status("CapInh", 16) != 0) return 2;
            return ::write(ends[1], &*kept, sizeof(*kept)) == sizeof(*kept) ? 0 : 3;
        });
        CHECK(ended.code == 0);
        std::uint64_t kept = 0;
        REQUIRE(::read(ends[0], &kept, sizeof(kept)) == sizeof(kept));
        ::close(ends[0]);
        ::close(ends[1]);
        return kept;
    };
    const std::uint64_t had = own_status("CapEff", 16);
    // From capabilities(7): dac_read_search, ipc_lock, sys_ptrace, syslog, perfmon, checkpoint_restore.
    const std::uint64_t base = bit(2) | bit(14) | bit(19) | bit(34) | bit(38) | bit(40);
    CHECK(effective_after({}) == (had & base));
    CHECK(effective_after({.low_port = true}) == (had & (base | bit(10))));
    CHECK(effective_after({.signal_others = true}) == (had & (base | bit(5))));
    CHECK((had & bit(0)) != 0);  // chown, which is dropped
}
