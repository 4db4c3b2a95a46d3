#include "agent/health/sensors.h"

#include <catch2/catch.hpp>

#include "../agent_process/fake_proc.h"

using namespace flamewire::agent;
using flamewire::agent::test::FakeProc;

namespace {

HealthRoots roots_of(const FakeProc& proc) { return {proc.root(), proc.path("sys")}; }
std::vector<CpuTimes> cpus(std::initializer_list<std::uint32_t> ids) {
    std::vector<CpuTimes> list;
    for (const std::uint32_t id : ids) list.push_back({id, {}});
    return list;
}
using Rates = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE("the hottest plausible zone") {
    FakeProc proc;
    const HealthRoots roots = roots_of(proc);
    CHECK_FALSE(read_temperature(roots).has_value());
    proc.write("sys/class/thermal/cooling_device0/temp", "99000\n");
    proc.write("sys/class/thermal/thermal_zone0/temp", "0\n");
    proc.write("sys/class/thermal/thermal_zone1/temp", "-273200\n");
    proc.write("sys/class/thermal/thermal_zone2/temp", "4294967295\n");
    proc.write("sys/class/thermal/thermal_zone3/temp", "");
    proc.write("sys/class/thermal/thermal_zone4/type", "no temp here\n");
    CHECK_FALSE(read_temperature(roots).has_value());
    proc.write("sys/class/thermal/thermal_zone5/temp", "-12600\n");
    CHECK(read_temperature(roots) == -13);
    proc.write("sys/class/thermal/thermal_zone6/temp", "54499\n");
    proc.write("sys/class/thermal/thermal_zone7/temp", "41000\n");
    CHECK(read_temperature(roots) == 54);
    proc.write("sys/class/thermal/thermal_zone6/temp", "54500\n");
    CHECK(read_temperature(roots) == 55);
}

TEST_CASE("clock rates from cpufreq, for the CPUs that are online") {
    FakeProc proc;
    const HealthRoots roots = roots_of(proc);
    CHECK(read_frequencies(roots, cpus({0})).empty());
    proc.write("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "1799999\n");
    proc.write("sys/devices/system/cpu/cpu3/cpufreq/scaling_cur_freq", "600400\n");
    CHECK(read_frequencies(roots, cpus({0, 3})) == Rates{1800, 600});
    CHECK(read_frequencies(roots, cpus({0, 1, 3})).empty());
    CHECK(read_frequencies(roots, {}).empty());
}

TEST_CASE("clock rates from cpuinfo") {
    FakeProc proc;
    const HealthRoots roots = roots_of(proc);
    proc.write("proc/cpuinfo", "processor\t: 0\nmodel name\t: A CPU @ 2.60GHz\ncpu MHz\t\t: 2599.998\nflags\t\t: " +
                                   std::string(6000, 'f') + "\n\nprocessor\t: 2\ncpu MHz\t\t: 1200.400\n");
    CHECK(read_frequencies(roots, cpus({0, 2})) == Rates{2600, 1200});
    // If a CPU is missing, or differs from /proc/stat, no rate is better than that of another CPU.
    CHECK(read_frequencies(roots, cpus({0, 2, 3})).empty());
    CHECK(read_frequencies(roots, cpus({0, 1})).empty());
    proc.write("proc/cpuinfo", "processor\t: 0\nBogoMIPS\t: 48.00\nprocessor\t: 1\nBogoMIPS\t: 48.00\n");
    CHECK(read_frequencies(roots, cpus({0, 1})).empty());
    proc.write("proc/cpuinfo", "processor\t: 0\ncpu MHz\t\t: fast\n");
    CHECK(read_frequencies(roots, cpus({0})).empty());
}
