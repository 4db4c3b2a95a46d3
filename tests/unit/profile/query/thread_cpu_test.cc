// CPU time of threads from all sources, counted by hand.
#include "profile/query/thread_cpu.h"

#include <catch2/catch.hpp>

#include "../batch_maker.h"

namespace flamewire::profile {

namespace {

constexpr std::uint64_t ms = 1'000'000;

// Two threads from 1000 ms to 2000 ms. The first has 600 ms of samples and the second 200 ms, or that many cycles.
struct Scene {
    BatchMaker maker;
    Store store;
    wire::Id first, second;
    std::vector<wire::CounterReading> readings;

    Scene() {
        const wire::Id process = maker.process(10);
        first = maker.thread(process, 10, "a");
        second = maker.thread(process, 11, "b");
    }
    void sample(const std::string& event, const std::string& unit) {
        const wire::Id id = maker.event(event, unit);
        const wire::Id stack = maker.stack({maker.named("main")});
        maker.row(100, id, first, stack, 60, 600 * ms);
        maker.row(199, id, second, stack, 20, 200 * ms);
    }
    // thread 0: the whole target
    void count(std::uint64_t start_ms, std::uint64_t end_ms, wire::Id thread, std::uint64_t value_ms) {
        const std::uint64_t elapsed = (end_ms - start_ms) * ms;
        wire::CounterValue value{};
        value.name = maker.string("task-clock");
        value.unit = maker.string("ns");
        value.thread = thread;
        value.value = value_ms * ms;
        value.enabled_ns = value.running_ns = elapsed;
        value.status = wire::CounterStatus::counted;
        wire::CounterReading reading{};
        reading.start_ns = start_ms * ms;
        reading.end_ns = end_ms * ms;
        reading.values = {value};
        readings.push_back(reading);
    }
    // Percentages of the two threads, which have the same source.
    std::pair<double, double> ask(CpuSource source) {
        const Filter filter{.event = 1};
        maker.batch().counters = readings;
        REQUIRE(store.apply(maker.take()));
        const auto cpu = thread_cpu(store, filter, thread_summary(store, filter), 1000 * ms);
        REQUIRE(cpu.size() == 2);
        CHECK(cpu.at(1).source == source);
        CHECK(cpu.at(2).source == source);
        return {cpu.at(1).percent, cpu.at(2).percent};
    }
};

}  // namespace

TEST_CASE("counted threads have their own task-clock") {
    Scene scene;
    scene.sample("cpu-clock", "ns");
    scene.count(1000, 2000, 0, 1500);  // the counter of the whole target is not used
    scene.count(1200, 1600, scene.first, 100);
    scene.count(1600, 2000, scene.first, 300);
    scene.count(1600, 1700, scene.second, 100);  // a thread that started and ended
    CHECK(scene.ask(CpuSource::counted) == std::pair(50.0, 12.5));
    // Only readings of the window count. The second thread has no samples in it.
    const Filter early{.event = 1, .start_ns = 1000 * ms, .end_ns = 1500 * ms};
    const auto cpu = thread_cpu(scene.store, early, thread_summary(scene.store, early), 1000 * ms);
    REQUIRE(cpu.size() == 1);
    CHECK(cpu.at(1).percent == 25.0);
}

TEST_CASE("a pause in counting by thread does not count as idle time") {
    Scene scene;
    scene.sample("cycles", "cycles");
    scene.count(1000, 1100, scene.first, 50);
    scene.count(1000, 1100, scene.second, 10);
    scene.count(1900, 2000, scene.first, 100);
    scene.count(1900, 2000, scene.second, 10);
    CHECK(scene.ask(CpuSource::counted) == std::pair(75.0, 10.0));
}

TEST_CASE("samples of a clock represent CPU time") {
    Scene scene;
    scene.sample("cpu-clock:u", "ns");
    scene.count(1000, 2000, 0, 1500);
    CHECK(scene.ask(CpuSource::clock_samples) == std::pair(60.0, 20.0));
}

TEST_CASE("other samples divide the task-clock of the whole target") {
    Scene scene;
    scene.sample("cycles", "cycles");
    scene.count(1000, 2000, 0, 1600);
    CHECK(scene.ask(CpuSource::share) == std::pair(120.0, 40.0));
}

TEST_CASE("without a clock, CPU time is unknown") {
    Scene scene;
    scene.sample("cycles", "cycles");
    REQUIRE(scene.store.apply(scene.maker.take()));
    const Filter filter{.event = 1};
    CHECK(thread_cpu(scene.store, filter, thread_summary(scene.store, filter), 0).empty());
}

}  // namespace flamewire::profile
