// Probes on functions of a running program: where they are, what stays, and what the program notices.
#include "agent/probes/place_probes.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "../agent_perf/live_target.h"
#include "agent/probes/probe_cost.h"

using namespace flamewire;
using namespace flamewire::agent;

// Symbols of this program, called by no other test.
extern "C" {
[[gnu::noinline]] int flamewire_probed_callee(int number) {
    asm volatile("" : "+r"(number));
    return number + 1;
}
[[gnu::noinline]] int flamewire_probed_caller(int number) { return flamewire_probed_callee(number) + 1; }
}

namespace {

bool may_probe() {
    if (::access("/sys/kernel/tracing/uprobe_events", W_OK) == 0) return true;
    WARN("NOT tested: /sys/kernel/tracing/uprobe_events cannot be written (no root, or tracefs is not mounted)");
    return false;
}

std::vector<EventSpec> parsed(const std::string& text) {
    auto specs = parse_events(text, real_sysfs());
    REQUIRE(specs);
    return *std::move(specs);
}

std::string created() {
    std::ifstream file("/sys/kernel/tracing/uprobe_events");
    return {std::istreambuf_iterator<char>(file), {}};
}

struct CountSamples final : RecordSink {
    std::uint64_t samples = 0;
    void on_record(const Record& record, std::optional<std::uint32_t>) override {
        if (std::holds_alternative<SampleRecord>(record)) ++samples;
    }
};

struct Progress {
    std::atomic<std::uint64_t> rounds{0}, failed{0};
};

}  // namespace

TEST_CASE("placed probes are tracepoints of the program's file") {
    if (!may_probe()) return;
    const ProbeTarget target{{static_cast<std::uint32_t>(::getpid())}, {}, true};
    const Sysfs sysfs = real_sysfs();
    std::vector<EventSpec> specs =
        parsed("cpu-clock,uprobe:flamewire_probed_call*@unit_agent_probes/n > 1/n=$arg1:s32/,off-cpu");
    std::string group;
    {
        ProbePlacer placer(target, sysfs, std::nullopt);
        REQUIRE(placer.place(specs));
        const PlacedProbes placed = placer.take();
        REQUIRE(placed.places.size() == 2);
        group = placed.events->group();
        CHECK(created().find("p:" + group + "/p0_flamewire_probed_calle") != std::string::npos);
    }
    CHECK(created().find(group) == std::string::npos);
    REQUIRE(specs.size() == 4);
    CHECK(specs[0].name == "cpu-clock");
    CHECK(specs[3].off_cpu != 0);  // the last spec, as parse_events() promises
    for (const std::size_t probe : {1U, 2U}) {
        CHECK(specs[probe].probe == nullptr);
        CHECK(specs[probe].fields == "__probe_ip, n");
        REQUIRE(specs[probe].parts.size() == 1);
        CHECK(specs[probe].parts[0].type == PERF_TYPE_TRACEPOINT);
        CHECK(specs[probe].parts[0].pmu == probe_pmu);
    }
}

TEST_CASE("nothing stays in tracefs if a probe is refused") {
    if (!may_probe()) return;
    const ProbeTarget target{{static_cast<std::uint32_t>(::getpid())}, {}, false};
    const Sysfs sysfs = real_sysfs();
    const std::string own = fmt::format("_{:x}_", ::getpid());
    for (const char* second :
         {"uprobe:no_such_function@unit_agent_probes", "uprobe:f@no-such-file",
          "uprobe:flamewire_probed_caller@unit_agent_probes//n=%nosuch/",
          "uprobe:flamewire_probed_caller+0x10000@unit_agent_probes", "uprobe:0x10@unit_agent_probes",
#if defined(__x86_64__) || defined(__aarch64__)
          "uprobe:flamewire_probed_caller+1@unit_agent_probes",  // inside an instruction
#endif
          "usdt:no:such@unit_agent_probes"}) {
        INFO(second);
        std::vector<EventSpec> specs =
            parsed(std::string("uprobe:flamewire_probed_callee@unit_agent_probes,") + second);
        {
            ProbePlacer placer(target, sysfs, std::nullopt);
            CHECK_FALSE(placer.place(specs));
        }
        CHECK(created().find(own) == std::string::npos);
    }
}

// The number of rounds can be raised to look for rare crashes: FLAMEWIRE_PROBE_ROUNDS=1000 build/bin/unit_agent_probes.
TEST_CASE("a busy program with threads survives that probes come and go") {
    if (!may_probe() || !perf_works()) return;
    const char* const wanted = std::getenv("FLAMEWIRE_PROBE_ROUNDS");
    const int rounds = wanted != nullptr ? std::atoi(wanted) : 10;
    const SharedMemory<Progress> progress;
    const Child child([&] {
        std::vector<std::thread> threads;
        for (int i = 0; i < 4; ++i)
            threads.emplace_back([&] {
                for (int number = 0;; ++number) {
                    if (flamewire_probed_caller(number) != number + 2) ++progress->failed;
                    if (number % 64 != 0) continue;
                    ++progress->rounds;
                    // Threads and children are born while probes come and go.
                    if (number % 65'536 == 0) std::thread([] { (void)flamewire_probed_caller(1); }).join();
                }
            });
        for (std::thread& thread : threads) thread.join();
    });
    child.go();
    const Sysfs sysfs = real_sysfs();
    const Capabilities capabilities = read_capabilities(sysfs);
    const ProbeTarget target{{child.pid()}, {}, true};
    std::uint64_t samples = 0;
    for (int round = 0; round < rounds; ++round) {
        std::vector<EventSpec> specs = parsed("uprobe:flamewire_probed_call*@unit_agent_probes");
        ProbePlacer placer(target, sysfs, std::nullopt);
        REQUIRE(placer.place(specs));
        const PlacedProbes placed = placer.take();
        auto choice = choose_events(std::move(specs), 99, 0, true, capabilities);
        REQUIRE(choice);
        EventSetOptions options;
        options.choice = *std::move(choice);
        options.targets = {{child.pid()}};
        auto set = EventSet::open(options, capabilities);
        if (!set) FAIL(set.error().message);
        CountSamples sink;
        run(**set, sink, milliseconds(20), milliseconds(5));
        samples += sink.samples;
    }
    const std::uint64_t before = progress->rounds;
    const std::uint64_t limit = monotonic_ns() + 60'000'000'000;
    while (progress->rounds == before && monotonic_ns() < limit) std::this_thread::yield();
    CHECK(progress->rounds > before);
    CHECK(progress->failed == 0);
    CHECK(samples > 0);
}
