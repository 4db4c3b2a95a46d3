#include "agent/health/process.h"

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "../agent_process/fake_proc.h"

using namespace flamewire::agent;
using flamewire::agent::test::FakeProc;

namespace {

constexpr std::uint64_t ns_per_s = 1'000'000'000;

// minflt cminflt majflt cmajflt utime stime … num_threads itrealvalue starttime, proc(5)
void write_stat(const FakeProc& proc, const std::string& path, std::uint64_t user, std::uint64_t system,
                std::uint64_t start = 500, const std::string& comm = "de mo)") {
    proc.write(path, "42 (" + comm + ") S 1 42 42 0 -1 4194304 123 9 7 9 " + std::to_string(user) + " " +
                         std::to_string(system) + " 0 0 20 0 5 0 " + std::to_string(start) + " 1000 10\n");
}

}  // namespace

TEST_CASE("one process") {
    FakeProc proc;
    write_stat(proc, "proc/42/stat", 100, 50);
    proc.write("proc/42/status",
               "Name:\tde mo)\nVmPeak:\t  9999 kB\nVmSize:\t5000000000 kB\nVmRSS:\t    3184 kB\nThreads:\t5\n"
               "voluntary_ctxt_switches:\t61\nnonvoluntary_ctxt_switches:\t27\n");
    proc.write("proc/42/oom_score", "666\n");
    for (const char* fd : {"0", "1", "7"}) proc.link(std::string("proc/42/fd/") + fd, "/dev/null");
    ProcessWatch watch(100);
    const std::vector<std::uint32_t> pids{42, 43};
    const auto first = watch.read(proc.root(), pids, 16, 10 * ns_per_s);
    REQUIRE(first.size() == 1);
    CHECK(first[0].pid == 42);
    CHECK(first[0].stat.comm == "de mo)");
    CHECK(first[0].stat.state == 'S');
    CHECK(first[0].stat.threads == 5);
    CHECK(first[0].stat.minor_faults == 123);
    CHECK(first[0].stat.major_faults == 7);
    CHECK_FALSE(first[0].cpu_permille.has_value());
    CHECK(first[0].vsize_kb == 5'000'000'000U);
    CHECK(first[0].rss_kb == 3184U);
    CHECK(first[0].voluntary_switches == 61U);
    CHECK(first[0].involuntary_switches == 27U);
    CHECK(first[0].fds == 3U);
    CHECK(first[0].oom_score == 666U);

    // 250 + 50 ticks of 10 ms in 2 s: one and a half CPUs.
    write_stat(proc, "proc/42/stat", 350, 100);
    CHECK(watch.read(proc.root(), pids, 16, 12 * ns_per_s).at(0).cpu_permille == 1500U);
    // One tick in 2.1 s is 0.476 %.
    write_stat(proc, "proc/42/stat", 351, 100);
    CHECK(watch.read(proc.root(), pids, 16, 14'100'000'000).at(0).cpu_permille == 5U);
    // Another process with the same pid.
    write_stat(proc, "proc/42/stat", 400, 100, 900);
    CHECK_FALSE(watch.read(proc.root(), pids, 16, 16 * ns_per_s).at(0).cpu_permille.has_value());
    // Time that decreases, and a pause.
    write_stat(proc, "proc/42/stat", 300, 100, 900);
    CHECK(watch.read(proc.root(), pids, 16, 18 * ns_per_s).at(0).cpu_permille == 0U);
    watch.forget();
    CHECK_FALSE(watch.read(proc.root(), pids, 16, 20 * ns_per_s).at(0).cpu_permille.has_value());
}

TEST_CASE("unreadable values are absent") {
    FakeProc proc;
    write_stat(proc, "proc/42/stat", 1, 1);
    proc.write("proc/42/status", "Name:\tkthread\nThreads:\t1\nVmRSS:\nvoluntary_ctxt_switches:\tmany\n");
    ProcessWatch watch(100);
    const std::vector<std::uint32_t> pids{42};
    const auto processes = watch.read(proc.root(), pids, 16, 1);
    REQUIRE(processes.size() == 1);
    CHECK_FALSE(processes[0].rss_kb.has_value());
    CHECK_FALSE(processes[0].vsize_kb.has_value());
    CHECK_FALSE(processes[0].fds.has_value());
    CHECK_FALSE(processes[0].voluntary_switches.has_value());
    CHECK_FALSE(processes[0].involuntary_switches.has_value());
    CHECK_FALSE(processes[0].oom_score.has_value());
    CHECK_FALSE(read_process_io(proc.root(), 42).has_value());
    CHECK(read_thread_ticks(proc.root(), 42, 64).empty());
}

TEST_CASE("the busiest processes; equally busy ones in the order of the target") {
    FakeProc proc;
    const std::vector<std::uint32_t> pids{1, 2, 3, 4};
    const auto ticks = [&](std::initializer_list<std::uint64_t> all) {
        std::uint32_t pid = 0;
        for (const std::uint64_t each : all) write_stat(proc, "proc/" + std::to_string(++pid) + "/stat", each, 0);
    };
    ProcessWatch watch(100);
    const auto look = [&](std::uint64_t second) {
        std::vector<std::uint32_t> found;
        for (const ProcessHealth& process : watch.read(proc.root(), pids, 3, second * ns_per_s))
            found.push_back(process.pid);
        return found;
    };
    ticks({10, 500, 10, 20});  // no earlier reading: sorted by their total use
    CHECK(look(1) == std::vector<std::uint32_t>{2, 4, 1});
    ticks({110, 500, 110, 70});  // 100, 0, 100, 50
    CHECK(look(2) == std::vector<std::uint32_t>{1, 3, 4});
}

TEST_CASE("io and threads of a process") {
    FakeProc proc;
    proc.write("proc/42/io",
               "rchar: 1\nwchar: 2\nsyscr: 33\nsyscw: 44\nread_bytes: 5000000000\nwrite_bytes: 66\n"
               "cancelled_write_bytes: 7\n");
    const auto io = read_process_io(proc.root(), 42);
    REQUIRE(io.has_value());
    CHECK(io->pid == 42);
    CHECK(io->read_bytes == 5'000'000'000);
    CHECK(io->write_bytes == 66);
    CHECK(io->read_system_calls == 33);
    CHECK(io->write_system_calls == 44);
    proc.write("proc/42/io", "rchar: 1\nread_bytes: 5\n");
    CHECK_FALSE(read_process_io(proc.root(), 42).has_value());

    write_stat(proc, "proc/42/task/42/stat", 3, 4, 1, "main");
    write_stat(proc, "proc/42/task/43/stat", 30, 40, 1, "worker");
    proc.write("proc/42/task/44/stat", "gone");
    proc.write("proc/42/task/x/stat", "no");
    auto threads = read_thread_ticks(proc.root(), 42, 64);
    REQUIRE(threads.size() == 2);
    std::ranges::sort(threads, {}, &ThreadTicks::tid);
    CHECK(threads[0].tid == 42);
    CHECK(threads[0].comm == "main");
    CHECK(threads[0].state == 'S');
    CHECK(threads[0].ticks == 7);
    CHECK(threads[1].ticks == 70);
    CHECK(read_thread_ticks(proc.root(), 42, 1).size() == 1);
}

TEST_CASE("open files of a real process") {
    const auto own = static_cast<std::uint32_t>(::getpid());
    const std::vector<std::uint32_t> pids{own};
    ProcessWatch watch(100);
    const auto before = watch.read("/proc", pids, 1, 1).at(0).fds;
    REQUIRE(before.has_value());
    const int one = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    const int two = ::dup(one);
    CHECK(watch.read("/proc", pids, 1, 2).at(0).fds == *before + 2);
    ::close(one);
    ::close(two);
}
