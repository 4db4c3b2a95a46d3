#include "agent/health/memory.h"

#include <catch2/catch.hpp>

#include "../agent_process/fake_proc.h"

using namespace flamewire::agent;
using flamewire::agent::test::FakeProc;

namespace {

HealthRoots roots_of(const FakeProc& proc) { return {proc.root(), proc.path("sys")}; }
constexpr std::uint64_t total_kb = 1'000'000;

}  // namespace

TEST_CASE("memory that is not available counts as used") {
    FakeProc proc;
    proc.write("proc/meminfo",
               "MemTotal:       24684084 kB\nMemFree:        20045792 kB\nMemAvailable:   23513764 kB\n"
               "Buffers:           62140 kB\nCached:          3002836 kB\nSwapCached:            5 kB\n"
               "SwapTotal:       2097148 kB\nSwapFree:        2000000 kB\n");
    const Memory memory = read_memory(proc.root());
    CHECK(memory.total_kb == 24'684'084U);
    CHECK(memory.available_kb == 23'513'764U);
    CHECK(memory.buffers_kb == 62'140U);
    CHECK(memory.cached_kb == 3'002'836U);
    CHECK(memory.swap_total_kb == 2'097'148U);
    CHECK(memory.swap_free_kb == 2'000'000U);
    CHECK(memory.used_kb() == 1'170'320U);
}

TEST_CASE("a kernel without MemAvailable") {
    FakeProc proc;
    proc.write("proc/meminfo", "MemTotal: 1000 kB\nMemFree: 300 kB\nBuffers: 50 kB\nCached: 250 kB\n");
    const Memory memory = read_memory(proc.root());
    CHECK_FALSE(memory.available_kb.has_value());
    CHECK_FALSE(memory.swap_total_kb.has_value());
    CHECK(memory.used_kb() == 400U);
    // If more is available than exists, nothing is used, and nothing wraps.
    proc.write("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 2000 kB\n");
    CHECK(read_memory(proc.root()).used_kb() == 0U);
    proc.write("proc/meminfo", "MemTotal:\nMemFree: x\nnonsense");
    CHECK_FALSE(read_memory(proc.root()).total_kb.has_value());
    CHECK_FALSE(read_memory(proc.root()).used_kb().has_value());
    CHECK_FALSE(read_memory("/does/not/exist").used_kb().has_value());
}

TEST_CASE("the tightest limit of the cgroups around the agent, v2") {
    FakeProc proc;
    const HealthRoots roots = roots_of(proc);
    CHECK_FALSE(read_memory_limit(roots, total_kb).has_value());
    proc.write("proc/self/cgroup", "0::/system.slice/agent.service/inner\n");
    CHECK_FALSE(read_memory_limit(roots, total_kb).has_value());
    proc.write("sys/fs/cgroup/system.slice/agent.service/inner/memory.max", "max\n");
    proc.write("sys/fs/cgroup/system.slice/agent.service/memory.max", "536870912\n");
    proc.write("sys/fs/cgroup/system.slice/agent.service/memory.current", "104857600\n");
    proc.write("sys/fs/cgroup/system.slice/memory.max", "805306368\n");
    proc.write("sys/fs/cgroup/system.slice/memory.current", "1\n");
    const auto limit = read_memory_limit(roots, total_kb);
    REQUIRE(limit.has_value());
    CHECK(limit->limit_kb == 524'288);
    CHECK(limit->used_kb == 102'400U);
    // A limit of all memory or more does not count.
    CHECK_FALSE(read_memory_limit(roots, 524'288).has_value());
    CHECK(read_memory_limit(roots, 524'289).has_value());
}

TEST_CASE("the limit of a container that sees its own cgroup as the root") {
    FakeProc proc;
    const HealthRoots roots = roots_of(proc);
    // Outside of the visible hierarchy.
    proc.write("sys/other/memory.max", "4096\n");
    for (const char* path : {"0::/\n", "0::/../../other\n", "0::/docker/not-mounted-here\n"}) {
        proc.write("proc/self/cgroup", path);
        proc.write("sys/fs/cgroup/memory.max", "1048576\n");
        proc.remove("sys/fs/cgroup/memory.current");
        const auto limit = read_memory_limit(roots, total_kb);
        REQUIRE(limit.has_value());
        CHECK(limit->limit_kb == 1024);
        CHECK_FALSE(limit->used_kb.has_value());
    }
}

TEST_CASE("limits of cgroup v1 take precedence over a v2 hierarchy without a memory controller") {
    FakeProc proc;
    const HealthRoots roots = roots_of(proc);
    proc.write("proc/self/cgroup", "9:name=systemd:/x\n4:hugetlb,memory:/docker/abc\n0::/docker/abc\n");
    proc.write("sys/fs/cgroup/memory.max", "4096\n");
    CHECK_FALSE(read_memory_limit(roots, total_kb).has_value());
    proc.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    CHECK_FALSE(read_memory_limit(roots, total_kb).has_value());
    proc.write("sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "268435456\n");
    proc.write("sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes", "2048\n");
    const auto limit = read_memory_limit(roots, total_kb);
    REQUIRE(limit.has_value());
    CHECK(limit->limit_kb == 262'144);
    CHECK(limit->used_kb == 2U);
}

TEST_CASE("an endless cgroup path") {
    FakeProc proc;
    std::string path;
    for (int i = 0; i < 1000; ++i) path += "/a";
    proc.write("proc/self/cgroup", "garbage\n::\n1:\n0::" + path + "\n");
    proc.write("sys/fs/cgroup/memory.max", "4096\n");
    CHECK_FALSE(read_memory_limit(roots_of(proc), total_kb).has_value());  // 16 levels are read
}
