// A fake kernel that counts as the test defines: a PMU with few counters, groups that fit or not, old kernels.
// Descriptors are checked: each one must be closed exactly once.
#pragma once

#include <catch2/catch.hpp>

#include <cerrno>
#include <map>
#include <set>
#include <vector>

#include "agent/perf/kernel.h"

namespace flamewire::agent {

class FakePmu {
public:
    std::size_t counters = 4;       // a group with more hardware events is refused
    std::size_t free_counters = 4;  // a group with more opens, but is never scheduled
    bool groups_of_inherited = true;
    std::set<std::uint64_t> missing;   // PERF_COUNT_HW_* that open with ENOENT
    std::set<std::uint64_t> silent;    // events that stay at 0
    std::map<pid_t, int> refused;      // thread -> errno
    std::size_t descriptors = 10'000;  // maximum of open ones
    bool kernel_mode = true;

    struct Event {
        perf_event_attr attr{};
        pid_t pid = 0;
        int cpu = -1;
        int leader = -1;
        std::vector<int> followers;
        std::uint64_t value = 0, enabled = 0, running = 0;
        bool on = true;
    };
    std::map<int, Event> events;
    int reads = 0;

    Kernel calls() {
        Kernel kernel = real_kernel();
        kernel.open_in_group = [this](perf_event_attr& attr, pid_t pid, int cpu, int leader) {
            return open(attr, pid, cpu, leader);
        };
        kernel.open = [this](perf_event_attr& attr, pid_t pid, int cpu) { return open(attr, pid, cpu, -1); };
        kernel.ioctl = [this](int fd, unsigned long request, unsigned long) {
            events.at(fd).on = request == PERF_EVENT_IOC_ENABLE;
            return 0;
        };
        kernel.read = [this](int fd, std::span<std::uint64_t> values) { return read(fd, values); };
        kernel.close = [this](int fd) { REQUIRE(events.erase(fd) == 1); };
        return kernel;
    }

    // The group leaders of a thread.
    std::vector<int> leaders(pid_t pid) const {
        std::vector<int> found;
        for (const auto& [fd, event] : events)
            if (event.pid == pid && event.leader < 0) found.push_back(fd);
        return found;
    }
    Event& event_of(pid_t pid, std::uint32_t type, std::uint64_t config, int cpu = -1) {
        for (auto& [fd, event] : events)
            if (event.pid == pid && event.attr.type == type && event.attr.config == config && event.cpu == cpu)
                return event;
        FAIL("no such event");
        return events.begin()->second;
    }

private:
    static bool hardware(const perf_event_attr& attr) { return attr.type != PERF_TYPE_SOFTWARE; }

    std::size_t hardware_in(const Event& leader) const {
        std::size_t count = hardware(leader.attr) ? 1 : 0;
        for (const int fd : leader.followers) count += hardware(events.at(fd).attr) ? 1U : 0U;
        return count;
    }

    int open(const perf_event_attr& attr, pid_t pid, int cpu, int leader) {
        if (events.size() >= descriptors) return -EMFILE;
        if (const auto found = refused.find(pid); found != refused.end()) return -found->second;
        if (attr.exclude_kernel == 0 && !kernel_mode) return -EACCES;
        if (attr.type == PERF_TYPE_HARDWARE && missing.contains(attr.config)) return -ENOENT;
        if (attr.inherit != 0 && (attr.read_format & PERF_FORMAT_GROUP) != 0 && !groups_of_inherited) return -EINVAL;
        if (leader >= 0 && hardware(attr) && hardware_in(events.at(leader)) + 1 > counters) return -EINVAL;
        const int fd = next_fd_++;
        events[fd] = {attr, pid, cpu, leader, {}, 0, 0, 0, attr.disabled == 0};
        if (leader >= 0) events.at(leader).followers.push_back(fd);
        return fd;
    }

    int read(int fd, std::span<std::uint64_t> values) {
        ++reads;
        Event& event = events.at(fd);
        const bool group = (event.attr.read_format & PERF_FORMAT_GROUP) != 0;
        // The agent's own thread, on which groups and events are tried, always runs.
        if (event.pid == 0) {
            const bool fits = hardware_in(event) <= free_counters;
            event.enabled = 1'000;
            event.running = fits ? 1'000 : 0;
            event.value = event.running != 0 && !(hardware(event.attr) && silent.contains(event.attr.config)) ? 42 : 0;
        }
        if (!group) {
            values[0] = event.value;
            values[1] = event.enabled;
            values[2] = event.running;
            return 3;
        }
        if (values.size() < 4 + event.followers.size()) return -ENOSPC;
        values[0] = 1 + event.followers.size();
        values[1] = event.enabled;
        values[2] = event.running;
        values[3] = event.value;
        for (std::size_t i = 0; i < event.followers.size(); ++i) values[4 + i] = events.at(event.followers[i]).value;
        return static_cast<int>(4 + event.followers.size());
    }

    int next_fd_ = 100;
};

}  // namespace flamewire::agent
