#include "agent/control/privileges.h"

#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <vector>

namespace flamewire::agent {
namespace {

// Some headers and kernels lack these.
constexpr unsigned cap_perfmon = 38, cap_checkpoint_restore = 40;

bool kernel_has(unsigned capability) { return ::prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; }

constexpr std::uint64_t bit(unsigned capability) { return std::uint64_t{1} << capability; }

std::uint64_t wanted_capabilities(const Needs& needs) {
    std::uint64_t wanted = bit(CAP_SYS_PTRACE) | bit(CAP_SYSLOG) | bit(CAP_IPC_LOCK) | bit(CAP_DAC_READ_SEARCH);
    // Before Linux 5.8 and 5.9 respectively, these required cap_sys_admin.
    wanted |= bit(kernel_has(cap_perfmon) ? cap_perfmon : CAP_SYS_ADMIN);
    wanted |= bit(kernel_has(cap_checkpoint_restore) ? cap_checkpoint_restore : CAP_SYS_ADMIN);
    if (needs.low_port) wanted |= bit(CAP_NET_BIND_SERVICE);
    if (needs.signal_others) wanted |= bit(CAP_KILL);
    return wanted;
}

#if defined(__x86_64__)
constexpr std::uint32_t audit_arch = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t audit_arch = AUDIT_ARCH_AARCH64;
#elif defined(__arm__)
constexpr std::uint32_t audit_arch = AUDIT_ARCH_ARM;
#elif defined(__s390x__)
constexpr std::uint32_t audit_arch = AUDIT_ARCH_S390X;
#else
constexpr std::uint32_t audit_arch = 0;
#endif

// On s390x, the flags are the second argument of clone(2).
#if defined(__s390x__)
constexpr std::size_t clone_flags_argument = 1;
#else
constexpr std::size_t clone_flags_argument = 0;
#endif

// None of these starts a program, changes another process, or changes the machine. The most frequent ones come first.
constexpr std::uint32_t allowed[] = {
    SYS_futex, SYS_read, SYS_pread64, SYS_write, SYS_epoll_pwait, SYS_ppoll, SYS_ioctl, SYS_sendmsg, SYS_recvmsg,
    SYS_sendto, SYS_recvfrom, SYS_process_vm_readv, SYS_clock_gettime, SYS_clock_nanosleep, SYS_nanosleep,
    SYS_perf_event_open,
    // memory
    SYS_brk, SYS_munmap, SYS_mprotect, SYS_madvise, SYS_mremap, SYS_mlock, SYS_munlock, SYS_msync, SYS_mincore,
    SYS_membarrier,
    // files
    SYS_openat, SYS_close, SYS_fstat, SYS_statx, SYS_lseek, SYS_readv, SYS_writev, SYS_pwrite64, SYS_preadv,
    SYS_pwritev, SYS_getdents64, SYS_readlinkat, SYS_faccessat, SYS_fcntl, SYS_dup, SYS_dup3, SYS_pipe2, SYS_flock,
    SYS_fsync, SYS_fdatasync, SYS_ftruncate, SYS_fallocate, SYS_statfs, SYS_fstatfs, SYS_unlinkat, SYS_umask,
    SYS_getcwd,
    // sockets and waiting
    SYS_socket, SYS_socketpair, SYS_connect, SYS_bind, SYS_listen, SYS_accept4, SYS_shutdown, SYS_getsockname,
    SYS_getpeername, SYS_setsockopt, SYS_getsockopt, SYS_sendmmsg, SYS_recvmmsg, SYS_pselect6, SYS_epoll_create1,
    SYS_epoll_ctl, SYS_eventfd2, SYS_inotify_init1, SYS_inotify_add_watch, SYS_signalfd4, SYS_timerfd_create,
    SYS_timerfd_settime, SYS_timerfd_gettime,
    // threads, signals, time
    SYS_exit, SYS_exit_group, SYS_set_robust_list, SYS_get_robust_list, SYS_set_tid_address, SYS_sched_yield,
    SYS_sched_getaffinity, SYS_sched_setaffinity, SYS_sched_getparam, SYS_sched_getscheduler, SYS_getcpu,
    SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_rt_sigpending, SYS_rt_sigtimedwait, SYS_rt_sigsuspend,
    SYS_sigaltstack, SYS_restart_syscall, SYS_kill, SYS_tgkill, SYS_tkill, SYS_wait4, SYS_waitid, SYS_clock_getres,
    SYS_gettimeofday, SYS_times,
    // identity and environment
    SYS_getpid, SYS_gettid, SYS_getppid, SYS_getpgid, SYS_getsid, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid,
    SYS_getgroups, SYS_uname, SYS_sysinfo, SYS_getrandom, SYS_getrusage, SYS_prlimit64, SYS_getpriority,
    SYS_setpriority, SYS_prctl, SYS_capget,
#ifdef SYS_rseq
    SYS_rseq,
#endif
#ifdef SYS_openat2
    SYS_openat2,
#endif
#ifdef SYS_faccessat2
    SYS_faccessat2,
#endif
#ifdef SYS_close_range
    SYS_close_range,
#endif
#ifdef SYS_epoll_pwait2
    SYS_epoll_pwait2,
#endif
#ifdef SYS_renameat
    SYS_renameat,
#endif
#ifdef SYS_renameat2
    SYS_renameat2,
#endif
#ifdef SYS_pidfd_open
    SYS_pidfd_open, SYS_pidfd_send_signal,
#endif
// Older variants that C libraries use on machines that have them.
#ifdef SYS_mmap
    SYS_mmap,
#endif
#ifdef SYS_newfstatat
    SYS_newfstatat,
#endif
#ifdef SYS_getrlimit
    SYS_getrlimit,
#endif
#ifdef SYS_setrlimit
    SYS_setrlimit,
#endif
#ifdef SYS_open
    SYS_open, SYS_stat, SYS_lstat, SYS_access, SYS_readlink, SYS_unlink, SYS_rename, SYS_pipe, SYS_dup2, SYS_poll,
    SYS_epoll_wait, SYS_epoll_create, SYS_getpgrp,
#endif
#ifdef SYS_accept
    SYS_accept,
#endif
#ifdef SYS_time
    SYS_time,
#endif
#ifdef SYS_arch_prctl
    SYS_arch_prctl,
#endif
#ifdef SYS__newselect
    SYS__newselect,
#endif
#ifdef SYS_select
    SYS_select,
#endif
#ifdef SYS_getdents
    SYS_getdents,
#endif
// On 32-bit machines: wide arguments and times.
#ifdef SYS_mmap2
    SYS_mmap2,
#endif
#ifdef SYS__llseek
    SYS__llseek,
#endif
#ifdef SYS_fcntl64
    SYS_fcntl64, SYS_fstat64, SYS_stat64, SYS_lstat64, SYS_fstatat64, SYS_ftruncate64, SYS_statfs64, SYS_fstatfs64,
    SYS_getuid32, SYS_geteuid32, SYS_getgid32, SYS_getegid32, SYS_getgroups32, SYS_ugetrlimit, SYS_send, SYS_recv,
#endif
#if defined(SYS_clock_gettime64) && SYS_clock_gettime64 >= 0
    SYS_clock_gettime64, SYS_clock_getres_time64, SYS_clock_nanosleep_time64, SYS_timerfd_gettime64,
    SYS_timerfd_settime64, SYS_pselect6_time64, SYS_ppoll_time64, SYS_recvmmsg_time64, SYS_rt_sigtimedwait_time64,
    SYS_futex_time64,
#endif
#if defined(__arm__)
    0x0f0002, 0x0f0005,  // cacheflush and set_tls of the Arm kernel
#endif
};

// Calls that an attacker would make next. clone is allowed for threads; with the flags of a process it is one of these.
constexpr std::uint32_t fatal[] = {
    SYS_execve,
    SYS_execveat,
    SYS_ptrace,
    SYS_process_vm_writev,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_setns,
    SYS_unshare,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_bpf,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_reboot,
    SYS_kexec_load,
    SYS_setuid,
    SYS_setgid,
    SYS_setreuid,
    SYS_setregid,
    SYS_setresuid,
    SYS_setresgid,
    SYS_setgroups,
    SYS_capset,
    SYS_mknodat,
    SYS_userfaultfd,
    SYS_memfd_create,
    SYS_swapon,
    SYS_swapoff,
    SYS_sethostname,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_adjtimex,
#ifdef SYS_fork
    SYS_fork,
    SYS_vfork,
#endif
#ifdef SYS_kexec_file_load
    SYS_kexec_file_load,
#endif
#ifdef SYS_io_uring_setup
    SYS_io_uring_setup,
#endif
};

class Program {
public:
    void load(std::size_t offset) { add(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset)); }
    // Skips `skip` instructions if the loaded word is not `value`.
    void unless_equal_skip(std::uint32_t value, std::uint8_t skip) { add(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip); }
    void if_equal(std::uint32_t value, std::uint32_t action) {
        unless_equal_skip(value, 1);
        end(action);
    }
    void unless_equal(std::uint32_t value, std::uint32_t action) {
        add(BPF_JMP | BPF_JEQ | BPF_K, value, 1, 0);
        end(action);
    }
    void if_at_least(std::uint32_t value, std::uint32_t action) {
        add(BPF_JMP | BPF_JGE | BPF_K, value, 0, 1);
        end(action);
    }
    void if_none_set(std::uint32_t bits, std::uint32_t action) {
        add(BPF_JMP | BPF_JSET | BPF_K, bits, 1, 0);
        end(action);
    }
    void end(std::uint32_t action) { add(BPF_RET | BPF_K, action); }
    [[nodiscard]] sock_fprog get() { return {static_cast<unsigned short>(code_.size()), code_.data()}; }

private:
    [[gnu::noinline]] void add(int code, std::uint32_t value, std::uint8_t if_true = 0, std::uint8_t if_false = 0) {
        code_.push_back({static_cast<std::uint16_t>(code), if_true, if_false, value});
    }
    std::vector<sock_filter> code_;
};

// seccomp(2): the filter's input is the number, the architecture and the arguments, as 64-bit words.
Program system_call_filter() {
    constexpr std::uint32_t kill = SECCOMP_RET_KILL_PROCESS, allow = SECCOMP_RET_ALLOW;
    constexpr std::uint32_t refuse = SECCOMP_RET_ERRNO | ENOSYS;
    constexpr std::size_t low_half = std::endian::native == std::endian::little ? 0 : 4;
    Program program;
    program.load(offsetof(seccomp_data, arch));
    program.unless_equal(audit_arch, kill);
    program.load(offsetof(seccomp_data, nr));
#if defined(__x86_64__)
    program.if_at_least(0x4000'0000, kill);  // the same calls with x32 numbers
#endif
    for (const std::uint32_t call : allowed) program.if_equal(call, allow);
    for (const std::uint32_t call : fatal) program.if_equal(call, kill);
    program.unless_equal_skip(SYS_clone, 4);
    program.load(offsetof(seccomp_data, args) + clone_flags_argument * sizeof(std::uint64_t) + low_half);
    program.if_none_set(CLONE_THREAD, kill);
    program.end(allow);
    // clone3 has its flags in memory, where a filter cannot read them. The C library falls back to clone.
    program.end(refuse);
    return program;
}

}  // namespace

Result<std::uint64_t> drop_capabilities(const Needs& needs) {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<__user_cap_data_struct, 2> sets{};
    if (::syscall(SYS_capget, &header, sets.data()) != 0) return fail_errno("capabilities cannot be read", errno);
    const std::uint64_t wanted = wanted_capabilities(needs);
    std::uint64_t kept = 0;
    for (std::size_t half = 0; half < sets.size(); ++half) {
        const auto mask = static_cast<std::uint32_t>(wanted >> (32 * half));
        sets[half].permitted &= mask;
        sets[half].effective &= mask;
        sets[half].inheritable = 0;
        kept |= std::uint64_t{sets[half].permitted} << (32 * half);
    }
    if (::syscall(SYS_capset, &header, sets.data()) != 0) return fail_errno("capabilities cannot be given up", errno);
    return kept;
}

Result<bool> restrict_system_calls() {
    if (audit_arch == 0) return fail(ErrorCode::unsupported, "there is no list of system calls for this architecture");
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return fail(ErrorCode::unsupported, "this kernel has no seccomp filters");
    Program program = system_call_filter();
    const sock_fprog code = program.get();
    if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &code) != 0)
        return fail(ErrorCode::unsupported, "this kernel has no seccomp filters");
    return true;
}

}  // namespace flamewire::agent
