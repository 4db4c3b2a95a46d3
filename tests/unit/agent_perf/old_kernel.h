// A fake kernel of a given release: it accepts the attributes of that release and refuses all others as it does. The
// facts are from the history of include/uapi/linux/perf_event.h and kernel/events/core.c, with the release of each bit
// beside it. Descriptors are checked: each must be closed exactly once.
#pragma once

#include <catch2/catch.hpp>
#include <sys/mman.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>
#include <vector>

#include "agent/perf/capabilities.h"
#include "agent/perf/kernel.h"
#include "unwind/frame/linux_registers.h"

namespace flamewire::agent {

struct Release {
    const char* name;
    // sizeof(perf_event_attr): 112 (VER5) since 4.1, 120 (VER6) since 5.5, 128 (VER7) since 5.13, 136 (VER8) since 6.3.
    std::uint32_t attr_bytes;
    // The number of bits of each field. Flags: write_backward 27 (4.7), namespaces 28 (4.12), ksymbol 29 and bpf_event
    // 30 (5.1), aux_output 31 (5.4), cgroup 32 (5.7), text_poke 33 (5.9), build_id 34 (5.12), inherit_thread 35,
    // remove_on_exec 36 and sigtrap 37 (5.13).
    unsigned flags;
    // REGS_INTR 18 (3.19), PHYS_ADDR 19 (4.14), AUX 20 (5.5), CGROUP 21 (5.7), DATA_PAGE_SIZE 22 and CODE_PAGE_SIZE 23
    // (5.11), WEIGHT_STRUCT 24 (5.12).
    unsigned sample_types;
    unsigned read_formats;  // GROUP 3, LOST 4 (6.0)
    unsigned
        branches;  // CALL_STACK 11 (4.1), NO_CYCLES 15 (4.3), TYPE_SAVE 16 (4.14), HW_INDEX 17 (5.7), PRIV_SAVE 18 (6.1)
    bool groups_of_inherited;  // PERF_FORMAT_GROUP of inherited events (4.13)
    bool pmu_in_config;        // PERF_TYPE_HARDWARE with the PMU's number in the upper half of config (5.13)
};
inline constexpr Release linux_4_9{"4.9", 112, 28, 19, 4, 16, false, false};
inline constexpr Release linux_4_14{"4.14", 112, 29, 20, 4, 17, true, false};
inline constexpr Release linux_5_4{"5.4", 112, 32, 20, 4, 17, true, false};
inline constexpr Release linux_6_1{"6.1", 128, 38, 25, 5, 19, true, true};

// The flags of an attr as one number, in the header's order: bit 0 is `disabled`. Compilers for big-endian machines put
// the first flag in the highest bit.
inline std::uint64_t flag_word(const perf_event_attr& attr) {
    std::uint64_t word = 0;
    std::memcpy(&word, reinterpret_cast<const char*>(&attr) + 40, sizeof word);
    if constexpr (std::endian::native == std::endian::little) return word;
    std::uint64_t turned = 0;
    for (unsigned bit = 0; bit < 64; ++bit) turned |= ((word >> bit) & 1U) << (63 - bit);
    return turned;
}

class OldKernel {
public:
    explicit OldKernel(const Release& is) : release(is) {}

    Release release;
    bool perf_events = true;     // CONFIG_PERF_EVENTS
    bool privileged = false;     // CAP_SYS_ADMIN (CAP_PERFMON since 5.8) and CAP_IPC_LOCK
    bool pmu = true;             // hardware counters …
    bool interrupts = true;      // … which can interrupt
    bool modes = true;           // … which distinguish user from kernel mode (ARMv6's do not)
    bool user_registers = true;  // HAVE_PERF_REGS, HAVE_PERF_USER_STACK_DUMP
    bool call_stacks = false;    // branch records in call-stack mode
    int paranoid = 1;
    std::int64_t max_rate_hz = 100'000;
    std::size_t descriptors = 10'000;  // maximum of open ones
    int refuse_hardware = 0;           // errno of every hardware event
    std::uint64_t page_size = 4'096;
    std::int64_t mlock_kb = 516;
    std::uint64_t memlock_bytes = 0;  // RLIMIT_MEMLOCK
    std::size_t cpus = 2;
    bool sysctls = true;  // /proc/sys/kernel exists

    struct Event {
        perf_event_attr attr{};
        pid_t pid = 0;
        int cpu = -1, leader = -1, output = -1;
        std::vector<int> followers;
        bool enabled = true;
        std::uint64_t mapped = 0;
        void* memory = nullptr;  // mapped
    };
    std::map<int, Event> events;
    std::uint64_t locked_bytes = 0, most_locked_bytes = 0;
    std::uint64_t count = 42, lost = 0;  // the values of every event

    Kernel calls() {
        Kernel kernel = real_kernel();
        kernel.open = [this](perf_event_attr& attr, pid_t pid, int cpu) { return open(attr, pid, cpu, -1); };
        kernel.open_in_group = [this](perf_event_attr& attr, pid_t pid, int cpu, int leader) {
            return open(attr, pid, cpu, leader);
        };
        kernel.ioctl = [this](int fd, unsigned long request, unsigned long argument) {
            return control(events.at(fd), request, argument);
        };
        kernel.id = [this](int fd, std::uint64_t& id) {
            REQUIRE(events.contains(fd));
            id = static_cast<std::uint64_t>(fd);
            return 0;
        };
        kernel.read = [this](int fd, std::span<std::uint64_t> values) { return read(events.at(fd), values); };
        kernel.map = [this](int fd, std::size_t size, int& error) { return map(events.at(fd), size, error); };
        kernel.close = [this](int fd) {
            locked_bytes -= events.at(fd).mapped;
            REQUIRE(events.erase(fd) == 1);
        };
        kernel.sysctl = [this](const std::string& name) { return sysctl(name); };
        kernel.page_size = page_size;
        return kernel;
    }

private:
    // perf_copy_attr() and its callees, then perf_event_open(), in their order.
    int open(perf_event_attr& attr, pid_t pid, int cpu, int leader) {
        if (!perf_events) return -ENOSYS;
        const auto* bytes = reinterpret_cast<const unsigned char*>(&attr);
        for (std::uint32_t at = release.attr_bytes; at < attr.size; ++at)
            if (bytes[at] != 0) {
                attr.size = release.attr_bytes;
                return -E2BIG;
            }
        const auto unknown = [](std::uint64_t word, unsigned known) { return (word >> known) != 0; };
        if (unknown(flag_word(attr), release.flags) || unknown(attr.sample_type, release.sample_types) ||
            unknown(attr.read_format, release.read_formats))
            return -EINVAL;
        if ((attr.sample_type & PERF_SAMPLE_BRANCH_STACK) != 0 &&
            (attr.branch_sample_type == 0 || unknown(attr.branch_sample_type, release.branches)))
            return -EINVAL;
        if ((attr.sample_type & PERF_SAMPLE_REGS_USER) != 0) {
            if (!user_registers) return -ENOSYS;
            const std::uint64_t known = unwind::sampled_register_mask(sampled_architectures().front());
            if (attr.sample_regs_user == 0 || (attr.sample_regs_user & ~known) != 0) return -EINVAL;
        }
        if ((attr.sample_type & PERF_SAMPLE_STACK_USER) != 0) {
            if (!user_registers) return -ENOSYS;
            if (attr.sample_stack_user >= 0xffff || attr.sample_stack_user % 8 != 0) return -EINVAL;
        }
        if (!privileged && (paranoid > 2 || (attr.exclude_kernel == 0 && paranoid > 1))) return -EACCES;
        if (attr.freq != 0 && attr.sample_freq > static_cast<std::uint64_t>(max_rate_hz)) return -EINVAL;
        if (attr.use_clockid != 0 && attr.clockid != CLOCK_MONOTONIC) return -EINVAL;
        if (attr.inherit != 0) {
            if (!release.groups_of_inherited && (attr.read_format & PERF_FORMAT_GROUP) != 0) return -EINVAL;
            if ((attr.sample_type & PERF_SAMPLE_READ) != 0) return -EINVAL;
        }
        const bool hardware = attr.type != PERF_TYPE_SOFTWARE && attr.type != PERF_TYPE_TRACEPOINT;
        if (const int refused = hardware ? refuse(attr) : 0; refused != 0) return -refused;
        if (events.size() >= descriptors) return -EMFILE;
        const int fd = next_fd_++;
        events[fd] = {attr, pid, cpu, leader, -1, {}, attr.disabled == 0, 0, nullptr};
        if (leader >= 0) events.at(leader).followers.push_back(fd);
        return fd;
    }

    int refuse(const perf_event_attr& attr) const {
        if (!pmu) return ENOENT;
        if (attr.type == PERF_TYPE_HARDWARE && (attr.config >> 32) != 0 && !release.pmu_in_config) return EINVAL;
        if (refuse_hardware != 0) return refuse_hardware;
        // If the kernel runs in the hypervisor's mode (ARMv8.1), the two cannot be distinguished (until 4.14).
        if (release.flags < 29 && attr.exclude_kernel != attr.exclude_hv) return EINVAL;
        if (!modes && (attr.exclude_user != 0 || attr.exclude_kernel != 0 || attr.exclude_hv != 0)) return EOPNOTSUPP;
        if (!interrupts && attr.sample_period != 0) return EOPNOTSUPP;
        if ((attr.sample_type & PERF_SAMPLE_BRANCH_STACK) != 0 && !call_stacks) return EOPNOTSUPP;
        return 0;
    }

    // perf_event_set_output(): one CPU, one clock. Requests that a release lacks return ENOTTY. All requests of the
    // agent are older.
    int control(Event& event, unsigned long request, unsigned long argument) {
        switch (request) {
            case PERF_EVENT_IOC_ENABLE: event.enabled = true; return 0;
            case PERF_EVENT_IOC_DISABLE: event.enabled = false; return 0;
            case PERF_EVENT_IOC_SET_OUTPUT: {
                const auto owner = events.find(static_cast<int>(argument));
                if (owner == events.end() || owner->second.mapped == 0) return -EINVAL;
                const perf_event_attr& to = owner->second.attr;
                if (owner->second.cpu != event.cpu || event.cpu < 0) return -EINVAL;
                if (to.use_clockid != event.attr.use_clockid || to.clockid != event.attr.clockid) return -EINVAL;
                event.output = owner->first;
                return 0;
            }
            default: return -ENOTTY;
        }
    }

    // In the order of perf_read_one() and perf_read_group().
    int read(const Event& event, std::span<std::uint64_t> values) const {
        const std::uint64_t format = event.attr.read_format;
        std::vector<std::uint64_t> all;
        const auto times = [&] {
            if ((format & PERF_FORMAT_TOTAL_TIME_ENABLED) != 0) all.push_back(1'000);
            if ((format & PERF_FORMAT_TOTAL_TIME_RUNNING) != 0) all.push_back(1'000);
        };
        const auto value = [&] {
            all.push_back(count);
            if ((format & PERF_FORMAT_LOST) != 0) all.push_back(lost);
        };
        if ((format & PERF_FORMAT_GROUP) == 0) {
            all.push_back(count);
            times();
            if ((format & PERF_FORMAT_LOST) != 0) all.push_back(lost);
        } else {
            all.push_back(1 + event.followers.size());
            times();
            for (std::size_t i = 0; i <= event.followers.size(); ++i) value();
        }
        if (values.size() < all.size()) return -ENOSPC;
        std::copy(all.begin(), all.end(), values.begin());
        return static_cast<int>(all.size());
    }

    // perf_mmap(): one page of positions and 2^n pages of data. The limit is the sysctl per CPU, plus RLIMIT_MEMLOCK.
    void* map(Event& event, std::size_t size, int& error) {
        const std::uint64_t pages = size / page_size - 1;
        if (size % page_size != 0 || !std::has_single_bit(pages) || (event.attr.inherit != 0 && event.cpu < 0)) {
            error = -EINVAL;
            return nullptr;
        }
        const std::uint64_t allowed = static_cast<std::uint64_t>(mlock_kb) / (page_size / 1024) * page_size * cpus;
        if (!privileged && paranoid > -1 && locked_bytes + size > allowed + memlock_bytes) {
            error = -EPERM;
            return nullptr;
        }
        void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        REQUIRE(memory != MAP_FAILED);
        locked_bytes += size;
        most_locked_bytes = std::max(most_locked_bytes, locked_bytes);
        event.mapped = size;
        event.memory = memory;
        return memory;
    }

    std::optional<std::int64_t> sysctl(const std::string& name) const {
        if (!perf_events || !sysctls) return std::nullopt;
        if (name == "perf_event_paranoid") return paranoid;
        if (name == "perf_event_max_sample_rate") return max_rate_hz;
        if (name == "perf_event_max_stack") return 127;  // 4.8
        if (name == "perf_event_mlock_kb") return mlock_kb;
        return std::nullopt;
    }

    int next_fd_ = 1'000;
};

}  // namespace flamewire::agent
