// Shares of CPU time from two readings of /proc/stat, computed by hand.
#include "agent/health/cpu.h"

#include <catch2/catch.hpp>

#include "../agent_process/fake_proc.h"

using namespace flamewire::agent;
using flamewire::agent::test::FakeProc;

namespace {

std::vector<std::pair<unsigned, unsigned>> pairs(const CpuShares& shares) {
    std::vector<std::pair<unsigned, unsigned>> all;
    for (const CpuShare& share : shares.cpus) all.emplace_back(share.cpu, share.permille);
    return all;
}

}  // namespace

TEST_CASE("shares between two readings") {
    FakeProc proc;
    CpuUsage usage;
    //                          user nice sys idle iowait irq softirq steal guest guest_nice
    proc.write("proc/stat",
               "cpu  300 0 150 1600 150 0 0 0 0 0\ncpu0 100 0 50 800 50 0 0 0 0 0\ncpu1 200 0 100 800 100 0 0 0 0 0\n"
               "intr 77 1 2 3\nctxt 1234\nbtime 1\nprocesses 9\nprocs_running 3\nprocs_blocked 1\nsoftirq 5 5\n");
    const KernelStat first = read_kernel_stat(proc.root());
    CHECK(first.interrupts == 77U);
    CHECK(first.context_switches == 1234U);
    CHECK(first.procs_running == 3U);
    CHECK(first.procs_blocked == 1U);
    CHECK(first.cpus.size() == 2);
    const CpuShares none = usage.next(first);
    CHECK_FALSE(none.overall_permille.has_value());
    CHECK(none.cpus.empty());

    // CPU 0: 50 user, 20 system, 100 idle, 30 waiting for a disk: 70 of 200. CPU 1: 4 nice, 1 irq, 2 softirq, 3 stolen
    // and 190 idle: 10 of 200. Together 80 of 400. The user time already includes guests.
    proc.write(
        "proc/stat",
        "cpu  350 4 170 1890 180 1 2 3 40 0\ncpu0 150 0 70 900 80 0 0 0 40 0\ncpu1 200 4 100 990 100 1 2 3 0 0\n");
    const KernelStat second = read_kernel_stat(proc.root());
    CHECK_FALSE(second.interrupts.has_value());
    CHECK_FALSE(second.procs_blocked.has_value());
    const CpuShares shares = usage.next(second);
    CHECK(shares.overall_permille == 200U);
    CHECK(pairs(shares) == std::vector<std::pair<unsigned, unsigned>>{{0, 350}, {1, 50}});

    usage.forget();
    CHECK_FALSE(usage.next(second).overall_permille.has_value());
}

TEST_CASE("a column that decreases counts as unchanged") {
    FakeProc proc;
    CpuUsage usage;
    proc.write("proc/stat", "cpu0 100 0 0 100 50 0 0 0\n");
    usage.next(read_kernel_stat(proc.root()));
    proc.write("proc/stat", "cpu0 150 0 0 150 40 0 0 0\n");  // 50 busy, 50 idle, iowait -10
    CHECK(pairs(usage.next(read_kernel_stat(proc.root()))) == std::vector<std::pair<unsigned, unsigned>>{{0, 500}});
}

TEST_CASE("a CPU that goes offline and comes back has no share until it has two readings") {
    FakeProc proc;
    CpuUsage usage;
    proc.write("proc/stat", "cpu  0 0 0 20000 0\ncpu0 0 0 0 10000 0\ncpu1 0 0 0 10000 0\n");
    usage.next(read_kernel_stat(proc.root()));
    // The total idle time fell because CPU 1 is gone. CPU 0 was idle for 150 of 200.
    proc.write("proc/stat", "cpu  50 0 0 10170 0\ncpu0 50 0 0 10150 0\n");
    const CpuShares alone = usage.next(read_kernel_stat(proc.root()));
    CHECK(alone.overall_permille == 250U);
    CHECK(pairs(alone) == std::vector<std::pair<unsigned, unsigned>>{{0, 250}});

    proc.write("proc/stat", "cpu  50 0 0 10420 0\ncpu0 50 0 0 10350 0\ncpu1 0 0 0 70 0\n");
    CHECK(pairs(usage.next(read_kernel_stat(proc.root()))) == std::vector<std::pair<unsigned, unsigned>>{{0, 0}});
    proc.write("proc/stat", "cpu  50 0 0 10820 0\ncpu0 50 0 0 10550 0\ncpu1 100 0 0 170 0\n");
    CHECK(pairs(usage.next(read_kernel_stat(proc.root()))) ==
          std::vector<std::pair<unsigned, unsigned>>{{0, 0}, {1, 500}});

    // Off and on between two readings: its counters started at 0.
    proc.write("proc/stat", "cpu  50 0 0 10820 0\ncpu0 150 0 0 10650 0\ncpu1 5 0 0 20 0\n");
    const CpuShares anew = usage.next(read_kernel_stat(proc.root()));
    CHECK(pairs(anew) == std::vector<std::pair<unsigned, unsigned>>{{0, 500}});
    CHECK(anew.overall_permille == 500U);
}

TEST_CASE("a CPU that comes back in the middle does not affect the others") {
    FakeProc proc;
    CpuUsage usage;
    proc.write("proc/stat", "cpu0 0 0 0 100\ncpu2 0 0 0 100\n");
    usage.next(read_kernel_stat(proc.root()));
    proc.write("proc/stat", "cpu0 2 0 0 101\ncpu1 500 0 0 100\ncpu2 1 0 0 102\n");  // 2 of 3, rounded; 1 of 3
    CHECK(pairs(usage.next(read_kernel_stat(proc.root()))) ==
          std::vector<std::pair<unsigned, unsigned>>{{0, 667}, {2, 333}});
}

TEST_CASE("a kernel for one CPU, without a line per CPU and with few columns") {
    FakeProc proc;
    CpuUsage usage;
    proc.write("proc/stat", "cpu 10 0 10 80\n");
    usage.next(read_kernel_stat(proc.root()));
    proc.write("proc/stat", "cpu 20 0 20 160\n");
    CHECK(usage.next(read_kernel_stat(proc.root())).overall_permille == 200U);
    // The same counters again: no time has passed, so there is no share.
    CHECK_FALSE(usage.next(read_kernel_stat(proc.root())).overall_permille.has_value());
}

TEST_CASE("lines of any length, numbers beyond 32 bits, and garbage") {
    FakeProc proc;
    std::string interrupts = "intr 18446744073709551615";
    for (int i = 0; i < 20'000; ++i) interrupts += " 0";
    proc.write("proc/stat", "cpu  1 2 3 4 5 6 7 8\ncpu0 5000000000 0 0 6000000000 0 0 0 0\n" + interrupts +
                                "\nctxt 98765432109\nprocs_running 1\n");
    const KernelStat stat = read_kernel_stat(proc.root());
    CHECK(stat.interrupts == UINT64_MAX);
    CHECK(stat.context_switches == 98'765'432'109U);
    CHECK(stat.cpus.at(0).ticks.at(0) == 5'000'000'000U);

    proc.write("proc/stat", "cpux 1 2\ncpu99999999 1\ncpu3 x y\ncpu2 1\n\nintr\nctxt -4\nprocs_running abc\n");
    const KernelStat odd = read_kernel_stat(proc.root());
    CHECK(odd.cpus.size() == 1);
    CHECK_FALSE(odd.interrupts.has_value());
    CHECK_FALSE(odd.context_switches.has_value());
    CHECK_FALSE(odd.procs_running.has_value());

    const KernelStat missing = read_kernel_stat("/does/not/exist");
    CHECK_FALSE(missing.all.has_value());
    CHECK(missing.cpus.empty());
}
