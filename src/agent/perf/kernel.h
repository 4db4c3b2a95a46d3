// The system calls that this folder makes, as functions, so that tests can simulate other kernels.
#pragma once

#include <linux/perf_event.h>
#include <poll.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

namespace flamewire::agent {

// Every function returns what the system call returns, except that a failure is -errno.
struct Kernel {
    // Always sets FD_CLOEXEC. Returns -EMFILE while some descriptors are still left: those are reserved for other uses.
    std::function<int(perf_event_attr& attr, pid_t pid, int cpu)> open;
    // Requests that take a number or nothing (ENABLE, DISABLE, SET_OUTPUT).
    std::function<int(int fd, unsigned long request, unsigned long argument)> ioctl;
    // PERF_EVENT_IOC_ID.
    std::function<int(int fd, std::uint64_t& id)> id;
    // Fills `values` as read_format specifies; returns the number of values, or -errno.
    std::function<int(int fd, std::span<std::uint64_t> values)> read;
    // Maps `size` bytes shared, readable and writable; returns null with -errno in `error` on failure.
    std::function<void*(int fd, std::size_t size, int& error)> map;
    std::function<void(int fd)> close;
    // The number in /proc/sys/kernel/NAME.
    std::function<std::optional<std::int64_t>(const std::string& name)> sysctl;
    // Like open, into the group of `leader` (-1: the event leads a group).
    std::function<int(perf_event_attr& attr, pid_t pid, int cpu, int leader)> open_in_group = {};
    // Like open_in_group, for all that runs on the CPU in a control group (PERF_FLAG_PID_CGROUP); `folder` is its open
    // folder.
    std::function<int(perf_event_attr& attr, int folder, int cpu, int leader)> open_in_cgroup = {};
    // data_head of a ring: records below it are complete.
    std::function<std::uint64_t(const perf_event_mmap_page& ring)> head = {};
    // poll(2).
    std::function<int(std::span<pollfd> files, int timeout_ms)> poll = {};
    // Bytes per page, the unit of rings: 4, 16 or 64 KiB on 64-bit Arm.
    std::uint64_t page_size = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
};

const Kernel& real_kernel();

}  // namespace flamewire::agent
