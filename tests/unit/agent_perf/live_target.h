// A process to sample and an event set for it, for tests on the running kernel. Processes come from fork(), so they
// have few threads and known work. Waits are measured in the process's CPU time, because the machine may be busy.
#pragma once

#include <catch2/catch.hpp>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <ctime>
#include <memory>
#include <string_view>

#include "agent/perf/event_set.h"
#include "agent/perf/merge.h"
#include "base/clock.h"

namespace flamewire::agent {

using std::chrono::milliseconds;

inline bool perf_works() {
    static const Capabilities capabilities = read_capabilities(real_sysfs());
    if (!capabilities.perf_events) WARN("NOT tested: perf_event_open is not allowed here");
    return capabilities.perf_events;
}

inline void burn_thread_cpu(std::uint64_t nanoseconds) {
    const std::uint64_t end = thread_cpu_ns() + nanoseconds;
    while (thread_cpu_ns() < end)
        for (int i = 0; i < 1'000; ++i) asm volatile("" : : : "memory");
}

// A forked process that runs `work` after it receives a byte. It is killed and reaped at the end.
class Child {
public:
    template <class Work>
    explicit Child(Work work) {
        REQUIRE(::pipe(pipe_) == 0);
        pid_ = ::fork();
        if (pid_ == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            char byte = 0;
            if (::read(pipe_[0], &byte, 1) == 1) work();
            ::_exit(0);
        }
    }
    ~Child() {
        kill();
        ::close(pipe_[0]);
        ::close(pipe_[1]);
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    void go() const { REQUIRE(::write(pipe_[1], "g", 1) == 1); }
    [[nodiscard]] std::uint32_t pid() const { return static_cast<std::uint32_t>(pid_); }
    // CPU time of all its threads, including ended ones.
    [[nodiscard]] double cpu_seconds() const {
        clockid_t clock{};
        timespec used{};
        if (::clock_getcpuclockid(pid_, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return -1;
        return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
    }
    void kill() {
        if (!reaped_) ::kill(pid_, SIGKILL);
        reap();
    }
    void reap() {
        if (!reaped_) ::waitpid(pid_, nullptr, 0);
        reaped_ = true;
    }

private:
    int pipe_[2] = {-1, -1};
    pid_t pid_ = -1;
    bool reaped_ = false;
};

// Memory shared with the processes that a test forks.
template <class T>
class SharedMemory {
public:
    SharedMemory() : page_(::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
        REQUIRE(page_ != MAP_FAILED);
        value_ = new (page_) T();
    }
    ~SharedMemory() { ::munmap(page_, sizeof(T)); }
    SharedMemory(const SharedMemory&) = delete;
    SharedMemory& operator=(const SharedMemory&) = delete;

    T& operator*() const { return *value_; }
    T* operator->() const { return value_; }

private:
    void* page_;
    T* value_ = nullptr;
};

inline std::unique_ptr<EventSet> open_set(EventSetOptions options, std::string_view events = "cpu-clock",
                                          std::uint32_t hz = 999) {
    const Capabilities capabilities = read_capabilities(real_sysfs());
    auto choice = choose_events(*parse_events(events, real_sysfs()), hz, 0, true, capabilities);
    REQUIRE(choice);
    options.choice = *choice;
    auto set = EventSet::open(options, capabilities);
    if (!set) FAIL(set.error().message);
    return *std::move(set);
}

inline void run(EventSet& set, RecordSink& sink, milliseconds time, milliseconds tick = milliseconds(100)) {
    const std::uint64_t end = monotonic_ns() + static_cast<std::uint64_t>(time.count()) * 1'000'000;
    while (monotonic_ns() < end) {
        set.wait(tick, -1);
        set.drain(sink, release_everything);
    }
}

// Runs until the child has used this much more CPU time, because the machine may be busy.
inline void run_cpu(EventSet& set, RecordSink& sink, const Child& child, double seconds) {
    const double end = child.cpu_seconds() + seconds;
    const std::uint64_t limit = monotonic_ns() + 60'000'000'000;
    while (child.cpu_seconds() < end && monotonic_ns() < limit) run(set, sink, milliseconds(20), milliseconds(20));
}

inline void burn_until(const Child& child, double seconds) {
    const double end = child.cpu_seconds() + seconds;
    while (child.cpu_seconds() < end) ::usleep(10'000);
}

inline void finish(EventSet& set, RecordSink& sink) {
    REQUIRE(set.disable());
    set.drain_rest(sink);
}

}  // namespace flamewire::agent
