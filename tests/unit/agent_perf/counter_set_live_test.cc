// Counting on the running kernel, for processes with a known amount of work. The bounds allow for the cost of starting
// and ending a thread, but not for missing work.
#include <catch2/catch.hpp>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <set>
#include <thread>

#include "agent/perf/counter_set.h"
#include "agent/perf/merge.h"
#include "agent/perf/threads.h"
#include "base/clock.h"
#include "base/file.h"
#include "live_target.h"

using namespace flamewire;
using namespace flamewire::agent;

namespace {

constexpr std::size_t page = 4096;

// Sanitizers touch additional pages for each page of the test.
#ifdef FLAMEWIRE_SANITIZED
constexpr std::uint64_t sanitizer_pages = 4;
#else
constexpr std::uint64_t sanitizer_pages = 0;
#endif

void touch_pages(std::size_t count) {
    void* memory = ::mmap(nullptr, count * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ::madvise(memory, count * page, MADV_NOHUGEPAGE);
    for (std::size_t i = 0; i < count; ++i) static_cast<volatile char*>(memory)[i * page] = 1;
    ::munmap(memory, count * page);
}

std::vector<Counter> counters_of(std::string_view list) {
    static const Capabilities capabilities = read_capabilities(real_sysfs());
    return choose_counters(*parse_counters(list, real_sysfs()), false, capabilities);
}

std::unique_ptr<CounterSet> open_counters(const CounterSetOptions& options, const std::vector<Counter>& counters) {
    auto set = CounterSet::open(options, counters);
    if (!set) FAIL(set.error().message);
    return *std::move(set);
}

void until(const std::function<bool()>& condition) {
    const std::uint64_t limit = monotonic_ns() + 60'000'000'000;
    while (!condition() && monotonic_ns() < limit) ::usleep(5'000);
    REQUIRE(condition());
}

bool zombie(std::uint32_t pid) {
    const auto state = read_task_stat(pid);
    return !state || state->state == 'Z';
}

}  // namespace

TEST_CASE("threads and processes that start and end between readings keep their counts") {
    if (!perf_works()) return;
    // 40 threads and 10 processes, one after another, touch 500 pages each.
    const Child child([] {
        for (int i = 0; i < 50; ++i) {
            if (i % 5 != 0) {
                std::thread([] { touch_pages(500); }).join();
            } else if (const pid_t pid = ::fork(); pid == 0) {
                touch_pages(500);
                ::_exit(0);
            } else {
                ::waitpid(pid, nullptr, 0);
            }
            ::usleep(3'000);
        }
    });
    const std::vector<Counter> counters = counters_of("page-faults,minor-faults,task-clock");
    auto set = open_counters({.pids = {child.pid()}}, counters);
    child.go();
    std::vector<std::uint64_t> sums(counters.size(), 0);
    int readings = 0;
    until([&] {
        for (const CounterDelta& delta : set->read()) sums[delta.counter] += delta.value;
        ++readings;
        return zombie(child.pid());
    });
    CHECK(readings > 10);
    for (const CounterDelta& delta : set->read()) sums[delta.counter] += delta.value;
    // 25,000 pages. A process also copies a few dozen pages of its parent, and a thread touches a few pages of its
    // stack.
    CHECK(sums[0] >= 25'000);
    CHECK(sums[0] <= 25'000 + 50 * 200);
    CHECK(sums[1] == sums[0]);
    CHECK(sums[2] > 0);
}

TEST_CASE("by thread: each has its own counts, and they add up to the total") {
    if (!perf_works()) return;
    // One thread touches 1,000 pages, one 3,000, and a later one 2,000. The main thread waits.
    const Child child([] {
        std::thread a([] { touch_pages(1'000); }), b([] { touch_pages(3'000); });
        a.join();
        b.join();
        ::usleep(300'000);
        std::thread c([] {
            ::usleep(300'000);
            touch_pages(2'000);
            ::usleep(300'000);
        });
        c.join();
    });
    // Records of thread starts and ends come from sideband events.
    auto sideband = open_set({.targets = {{child.pid()}}});
    const std::vector<Counter> counters = counters_of("page-faults,task-clock");
    auto total = open_counters({.pids = {child.pid()}}, counters);
    auto by_thread = open_counters({.pids = {child.pid()}, .by = CountBy::thread}, counters);
    struct ForkRecords final : RecordSink {
        CounterSet* set = nullptr;
        std::set<std::uint32_t> started;
        void on_record(const Record& record, std::optional<std::uint32_t>) override {
            if (const auto* task = std::get_if<TaskRecord>(&record)) {
                set->on_task(*task);
                if (!task->exit) started.insert(task->tid);
            }
        }
    } forks;
    forks.set = by_thread.get();
    child.go();
    std::map<std::uint32_t, std::uint64_t> faults;
    until([&] {
        sideband->drain(forks, release_everything);
        for (const CounterDelta& delta : by_thread->read())
            if (delta.counter == 0) faults[delta.tid] += delta.value;
        return zombie(child.pid());
    });
    sideband->drain_rest(forks);
    for (const CounterDelta& delta : by_thread->read())
        if (delta.counter == 0) faults[delta.tid] += delta.value;
    CHECK(forks.started.size() == 3);
    std::multiset<std::uint64_t> thousands;
    std::uint64_t sum = 0;
    for (const auto& [tid, count] : faults) {
        if (count >= 1'000) thousands.insert(count / 1'000);
        sum += count;
    }
    // The first two threads may end before their start is read. Their counts may be missing. The late thread is
    // complete.
    CHECK(thousands.contains(2));
    const std::uint64_t all = total->read()[0].value;
    CHECK(all >= 6'000);
    CHECK(sum <= all);
    CHECK(total->read()[0].value == 0);
}

TEST_CASE("by CPU: counts belong to the CPU where they happened") {
    if (!perf_works()) return;
    if (::sysconf(_SC_NPROCESSORS_ONLN) < 2) {
        WARN("one CPU only: counts by CPU were NOT tested");
        return;
    }
    const Child child([] {
        for (const int cpu : {0, 1}) {
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            ::sched_setaffinity(0, sizeof one, &one);
            touch_pages(cpu == 0 ? 1'000 : 4'000);
        }
    });
    const std::vector<Counter> counters = counters_of("page-faults,task-clock");
    auto set = open_counters({.pids = {child.pid()}, .by = CountBy::cpu}, counters);
    child.go();
    until([&] { return zombie(child.pid()); });
    std::map<std::uint32_t, std::uint64_t> faults;
    for (const CounterDelta& delta : set->read()) {
        REQUIRE((delta.cpu_plus_1 == 1 || delta.cpu_plus_1 == 2));
        if (delta.counter == 0) faults[delta.cpu_plus_1] += delta.value;
    }
    CHECK((faults[1] >= 1'000 && faults[1] < sanitizer_pages * 1'000 + 1'300));
    CHECK((faults[2] >= 4'000 && faults[2] < sanitizer_pages * 4'000 + 4'300));
}

// The kernel's CPU time of a thread excludes time that the hypervisor took (stolen time), but perf's clock includes it.
// So the count of a thread that always runs is between its CPU time and the elapsed time.
TEST_CASE("a pause is not counted, and the count agrees with the kernel's clock") {
    if (!perf_works()) return;
    const Child child([] {
        for (;;) burn_thread_cpu(1'000'000);
    });
    const std::vector<Counter> counters = counters_of("task-clock,cpu-clock");
    auto set = open_counters({.pids = {child.pid()}}, counters);
    const double begin = child.cpu_seconds();
    const std::uint64_t wall_begin = monotonic_ns();
    child.go();
    burn_until(child, 0.2);
    const double burnt = child.cpu_seconds();
    REQUIRE(set->disable());
    const std::uint64_t wall = monotonic_ns() - wall_begin;
    const auto first = set->read();
    CHECK(static_cast<double>(first[0].value) >= 0.98e9 * (burnt - begin));
    CHECK(static_cast<double>(first[0].value) <= 1.02 * static_cast<double>(wall));
    CHECK(first[0].running_ns == first[0].enabled_ns);
    burn_until(child, 0.2);
    CHECK(set->read()[0].value == 0);
    REQUIRE(set->enable());
    burn_until(child, 0.2);
    CHECK(set->read()[0].value > 150'000'000);
}

TEST_CASE("a thousand threads: under a low limit of open files, some are not counted, and files can still be opened") {
    constexpr std::size_t count = 1'000;
    std::atomic<bool> end = false;
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < count; ++i) threads.emplace_back([&end] { end.wait(false); });
    const auto counters = counters_of("page-faults,task-clock");
    const std::uint32_t self = static_cast<std::uint32_t>(::getpid());
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    {
        rlimit high = before;
        high.rlim_cur = std::max<rlim_t>(before.rlim_cur, std::min<rlim_t>(before.rlim_max, 4'096));
        REQUIRE(high.rlim_cur >= 2 * (count + 1) + 128);
        REQUIRE(::setrlimit(RLIMIT_NOFILE, &high) == 0);
        const auto set = open_counters({.pids = {self}, .by = CountBy::thread}, counters);
        CHECK(set->descriptors() == 2 * (count + 1));
        CHECK(set->threads_skipped() == 0);
    }
    {
        rlimit low = before;
        low.rlim_cur = 400;
        REQUIRE(::setrlimit(RLIMIT_NOFILE, &low) == 0);
        const auto set = open_counters({.pids = {self}, .by = CountBy::thread}, counters);
        // 64 descriptors stay reserved. The test's own open files are unknown, but few.
        CHECK(set->descriptors() <= 400 - 64);
        CHECK(set->descriptors() >= 400 - 64 - 40);
        CHECK(set->threads_skipped() + set->descriptors() / 2 == count + 1);
        CHECK(read_file("/proc/self/stat", 4096).has_value());
    }
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
    end = true;
    end.notify_all();
    for (std::thread& thread : threads) thread.join();
}
