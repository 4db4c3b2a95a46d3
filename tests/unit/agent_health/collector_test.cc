// Whole rounds with files that the test writes, and the exact text of the frames.
#include "agent/health/collector.h"

#include <catch2/catch.hpp>

#include <algorithm>

#include "../agent_process/fake_proc.h"

using namespace flamewire::agent;
using flamewire::agent::test::FakeProc;
using Frames = std::vector<std::string>;

namespace {

HealthCollector collector_of(const FakeProc& proc) { return HealthCollector({proc.root(), proc.path("sys")}, 100); }

constexpr Moment first{1'700'000'000'123'456'789, 5'000'000'000}, second{1'700'000'002'123'456'789, 7'000'000'000};

void write_process(const FakeProc& proc, const std::string& pid, const std::string& user_ticks) {
    proc.write("proc/" + pid + "/stat",
               pid + " (demo) R 1 1 1 0 -1 0 10 0 2 0 " + user_ticks + " 0 0 0 20 0 3 0 77 1000 10\n");
}

std::string type_of(const std::string& frame) {
    const std::size_t begin = frame.find("\"type\":\"") + 8;
    return frame.substr(begin, frame.find('"', begin) - begin);
}

std::vector<std::string> types(const Frames& frames) {
    std::vector<std::string> all;
    for (const std::string& frame : frames) all.push_back(type_of(frame));
    return all;
}

}  // namespace

TEST_CASE("a machine that reports nothing has frames without values") {
    FakeProc proc;
    HealthCollector collector = collector_of(proc);
    HealthSettings all;
    all.disk = all.threads = true;
    OwnState watched;
    watched.pids = {42};
    const Frames frames = collector.round(all, watched, first);
    CHECK(
        frames ==
        Frames{
            R"({"ts":1700000000.123456,"mono_ns":5000000000,"type":"system","cpu":{"overall_pct":null,"per_core":[]}})",
            R"({"ts":1700000000.123456,"mono_ns":5000000000,"type":"network","interfaces":{}})",
            R"({"ts":1700000000.123456,"mono_ns":5000000000,"type":"disk","devices":{}})",
            R"({"ts":1700000000.123456,"mono_ns":5000000000,"type":"agent","cpu_pct":null,"ring_kb":0,"queue_batches":0,)"
            R"("spool_bytes":0,"samples_read":0,"samples_lost":0,"frames_dropped":0})"});
}

TEST_CASE("everything that a machine can report") {
    FakeProc proc;
    proc.write("proc/stat", "cpu  0 0 0 0\ncpu0 100 0 0 100\ncpu1 100 0 0 100\ncpu2 0 0 0 100\n");
    proc.write("proc/meminfo",
               "MemTotal: 8000 kB\nMemFree: 500 kB\nMemAvailable: 3000 kB\nBuffers: 100 kB\nCached: 2400 kB\n"
               "SwapTotal: 1000 kB\nSwapFree: 900 kB\n");
    proc.write("proc/loadavg", "0.07 1.50 12.34 3/456 789\n");
    proc.write("proc/uptime", "15783.91 30000.00\n");
    proc.write("proc/self/cgroup", "0::/box\n");
    proc.write("sys/fs/cgroup/box/memory.max", "4096000\n");
    proc.write("sys/fs/cgroup/box/memory.current", "1024000\n");
    proc.write("sys/class/thermal/thermal_zone0/temp", "48700\n");
    for (const char* cpu : {"0", "1", "2"})
        proc.write(std::string("sys/devices/system/cpu/cpu") + cpu + "/cpufreq/scaling_cur_freq", "1500000\n");
    proc.write("proc/net/dev", "h|\n eth0: 1 2 3 4 0 0 0 0 5 6 7 8 0 0 0 0\n");
    proc.write("proc/diskstats", " 8 0 vda 1 0 2 3 4 0 5 6 0 0 0\n");
    write_process(proc, "42", "100");
    proc.write("proc/42/status",
               "VmSize: 900 kB\nVmRSS: 300 kB\nvoluntary_ctxt_switches: 8\nnonvoluntary_ctxt_switches: 9\n");
    proc.write("proc/42/oom_score", "12\n");
    proc.link("proc/42/fd/0", "/dev/null");
    proc.write("proc/42/io", "syscr: 1\nsyscw: 2\nread_bytes: 3\nwrite_bytes: 4\n");
    proc.write("proc/42/task/42/stat", "42 (m\xff\"x) D 1 1 1 0 -1 0 0 0 0 0 5 6 0 0 20 0 1 0 77 1 1\n");

    HealthCollector collector = collector_of(proc);
    HealthSettings all;
    all.disk = all.threads = true;
    OwnState watched;
    watched.pids = {42};
    watched.cost.cpu_ns = 1'000'000;
    (void)collector.round(all, watched, first);

    // 2 s later: CPU 0 was busy for 50 of 200 ticks, CPU 2 for all 200, and CPU 1 is gone. The process ran for a
    // quarter of the time.
    proc.write(
        "proc/stat",
        "cpu  0 0 0 0\ncpu0 150 0 0 250\ncpu2 200 0 0 100\nintr 5 1\nctxt 6\nprocs_running 2\nprocs_blocked 0\n");
    write_process(proc, "42", "150");
    watched.cost = {5'600'000, 3'000 * 1024, 1296 * 1024, 1, 77, 1000, 3, 2};  // 4.6 ms in 2 s
    const Frames frames = collector.round(all, watched, second);
    const std::string head = R"({"ts":1700000002.123456,"mono_ns":7000000000,"type":)";
    CHECK(
        frames ==
        Frames{
            head +
                R"("system","cpu":{"overall_pct":62.5,"per_core":[25.0,100.0],"core_ids":[0,2],"freq_mhz":[1500,1500],"num_cores":2},)"
                R"("mem":{"total_kb":8000,"used_kb":5000,"available_kb":3000,"buffers_kb":100,"cached_kb":2400,)"
                R"("swap_total_kb":1000,"swap_used_kb":100,"used_pct":62.5,"limit_kb":4000,"limit_used_kb":1000},)"
                R"("load":{"avg_1m":0.07,"avg_5m":1.50,"avg_15m":12.34},"temp_c":49,"uptime_sec":15783,)"
                R"("context_switches":6,"interrupts":5,"procs_running":2,"procs_blocked":0})",
            head + R"("process","pid":42,"comm":"demo","state":"R","cpu_pct":25.0,"rss_kb":300,"vsize_kb":900,)"
                   R"("threads":3,"fds":1,"voluntary_csw":8,"involuntary_csw":9,"minor_faults":10,"major_faults":2,)"
                   R"("oom_score":12})",
            head + R"("network","interfaces":{"eth0":{"rx_bytes":1,"rx_packets":2,"rx_errors":3,"rx_drops":4,)"
                   R"("tx_bytes":5,"tx_packets":6,"tx_errors":7}}})",
            head + R"("disk","devices":{"vda":{"reads":1,"read_bytes":1024,"writes":4,"write_bytes":2560,"read_ms":3,)"
                   R"("write_ms":6}},"proc":{"pid":42,"read_bytes":3,"write_bytes":4,"syscr":1,"syscw":2}})",
            head + "\"threads\",\"pid\":42,\"clk_tck\":100,\"threads\":[{\"tid\":42,\"comm\":\"m\xef\xbf\xbd\\\"x\","
                   "\"state\":\"D\",\"ticks\":11}]}",
            head + R"("agent","cpu_pct":0.23,"rss_kb":3000,"ring_kb":1296,"queue_batches":1,"spool_bytes":77,)"
                   R"("samples_read":1000,"samples_lost":3,"frames_dropped":2})"});
}

TEST_CASE("without swap there is no value") {
    FakeProc proc;
    proc.write("proc/meminfo", "MemTotal: 9000 kB\nMemAvailable: 3000 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n");
    HealthCollector collector = collector_of(proc);
    const Frames frames = collector.round({}, {}, first);
    CHECK(frames.at(0) ==
          R"({"ts":1700000000.123456,"mono_ns":5000000000,"type":"system","cpu":{"overall_pct":null,"per_core":[]},)"
          R"("mem":{"total_kb":9000,"used_kb":6000,"available_kb":3000,"used_pct":66.7}})");
}

TEST_CASE("only the requested frames, and processes only while recording") {
    FakeProc proc;
    write_process(proc, "42", "1");
    proc.write("proc/42/task/42/stat", "42 (demo) R 1 1 1 0 -1 0 0 0 0 0 5 6 0 0 20 0 1 0 77 1 1\n");
    HealthCollector collector = collector_of(proc);
    OwnState watched;
    CHECK(types(collector.round({}, watched, first)) == std::vector<std::string>{"system", "network", "agent"});
    watched.pids = {42};
    CHECK(types(collector.round({}, watched, first)) ==
          std::vector<std::string>{"system", "process", "network", "agent"});
    HealthSettings few;
    few.network = false;
    CHECK(types(collector.round(few, watched, first)) == std::vector<std::string>{"system", "process", "agent"});
    few.disk = few.threads = true;
    CHECK(types(collector.round(few, watched, first)) ==
          std::vector<std::string>{"system", "process", "disk", "threads", "agent"});
}

TEST_CASE("limits of a round") {
    FakeProc proc;
    OwnState watched;
    for (std::uint32_t pid = 100; pid < 120; ++pid) {
        const std::string name = std::to_string(pid);
        write_process(proc, name, "1");
        for (int thread = 0; thread < 70; ++thread)
            proc.write("proc/" + name + "/task/" + std::to_string(1000 + thread) + "/stat",
                       "1 (t) S 1 1 1 0 -1 0 0 0 0 0 5 6 0 0 20 0 1 0 77 1 1\n");
        watched.pids.push_back(pid);
    }
    HealthSettings settings;
    settings.network = false;
    settings.threads = true;
    HealthCollector collector = collector_of(proc);
    const Frames frames = collector.round(settings, watched, first);
    const std::vector<std::string> kinds = types(frames);
    CHECK(std::ranges::count(kinds, "process") == 16);
    CHECK(std::ranges::count(kinds, "threads") == 4);
    for (const std::string& frame : frames)
        if (type_of(frame) == "threads") {
            std::size_t threads = 0;
            for (std::size_t at = frame.find("\"tid\""); at != std::string::npos; at = frame.find("\"tid\"", at + 1))
                ++threads;
            CHECK(threads == 64);
        }
}

TEST_CASE("after a pause, shares start again") {
    FakeProc proc;
    proc.write("proc/stat", "cpu0 100 0 0 100\n");
    HealthCollector collector = collector_of(proc);
    (void)collector.round({}, {}, first);
    collector.forget();
    proc.write("proc/stat", "cpu0 200 0 0 100\n");
    const Frames frames = collector.round({}, {}, second);
    CHECK(frames.front().find("\"overall_pct\":null") != std::string::npos);
    CHECK(frames.back().find("\"cpu_pct\":null") != std::string::npos);
}
