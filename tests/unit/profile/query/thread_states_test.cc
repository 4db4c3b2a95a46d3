// Thread states in a range of time, computed by hand.
#include "profile/query/thread_states.h"

#include <catch2/catch.hpp>

#include "../batch_maker.h"

namespace flamewire::profile {

namespace {

constexpr std::uint64_t ms = 1'000'000;

wire::ThreadTimes times(std::uint64_t end_ms, std::uint64_t run, std::uint64_t runnable, std::uint64_t blocked,
                        std::uint64_t io = 0) {
    wire::ThreadTimes all;
    all.end_ns = end_ms * ms;
    all.state_ns = {run * ms, runnable * ms, blocked * ms, io * ms};
    return all;
}

struct Scene {
    BatchMaker maker;
    Store store;
    wire::Id a, b;
    Scene() {
        const wire::Id process = maker.process(10);
        a = maker.thread(process, 10, "a");
        b = maker.thread(process, 11, "b");
    }
    void add_times(wire::Id thread, wire::ThreadTimes entry) {
        entry.thread = thread;
        maker.batch().thread_times.push_back(entry);
    }
};

}  // namespace

TEST_CASE("states add up, in proportion if a stretch is partly in the range or in several slices") {
    Scene scene;
    scene.add_times(scene.a, times(1100, 60, 40, 0));
    scene.add_times(scene.a, times(1200, 0, 0, 100));
    scene.add_times(scene.a, times(1400, 20, 0, 0, 80));  // starts at 1300: the state before is unknown
    scene.add_times(scene.b, times(1400, 0, 400, 0));
    REQUIRE(scene.store.apply(scene.maker.take()));
    const auto whole = states_of_threads(scene.store, {}, 1000 * ms, 4);
    REQUIRE(whole.known);
    CHECK(whole.start_ns == 1000 * ms);
    CHECK(whole.end_ns == 1400 * ms);
    REQUIRE(whole.threads.size() == 2);
    const ThreadStates& b = whole.threads[0];  // awake for longer, so it comes first
    const ThreadStates& a = whole.threads[1];
    CHECK(scene.store.threads()[b.thread].tid == 11);
    CHECK(b.sums == StateTimes{0, 400e6, 0, 0});
    for (const StateTimes& slice : b.slices) CHECK(slice == StateTimes{0, 100e6, 0, 0});
    CHECK(a.sums == StateTimes{80e6, 40e6, 100e6, 80e6});
    CHECK(a.slices == std::vector<StateTimes>{{60e6, 40e6, 0, 0}, {0, 0, 100e6, 0}, {}, {20e6, 0, 0, 80e6}});
    // Half of the first stretch, half of the second.
    const auto part =
        states_of_threads(scene.store, {.start_ns = 1050 * ms, .end_ns = 1150 * ms, .tids = {10}}, 1000 * ms, 0);
    REQUIRE(part.threads.size() == 1);
    CHECK(part.threads[0].sums == StateTimes{30e6, 20e6, 50e6, 0});
    CHECK(part.threads[0].slices.empty());
    CHECK(states_of_threads(scene.store, {.start_ns = 9000 * ms}, 1000 * ms, 4).threads.empty());
    CHECK_FALSE(states_of_threads(Store(), {}, 0, 4).known);
}

TEST_CASE("scheduling adds up the stretches that ended in the range") {
    Scene scene;
    wire::ThreadTimes first = times(1100, 60, 40, 0), second = times(1200, 70, 30, 0);
    first.slices.add(std::uint64_t{60 * ms});
    first.queued.add(std::uint64_t{40 * ms});
    first.preempted = 1;
    second.slices.add(std::uint64_t{70 * ms});
    second.slept = 1;
    scene.add_times(scene.a, first);
    scene.add_times(scene.a, second);
    scene.add_times(scene.b, times(1200, 0, 200, 0));
    REQUIRE(scene.store.apply(scene.maker.take()));
    const auto all = scheduling(scene.store, {});
    REQUIRE(all.size() == 2);
    CHECK(scene.store.threads()[all[0].thread].tid == 11);
    CHECK(all[1].times.slices.count() == 2);
    CHECK(all[1].times.slices.max_ns == 70 * ms);
    CHECK(all[1].times.preempted == 1);
    CHECK(all[1].times.slept == 1);
    const auto one = scheduling(scene.store, {.end_ns = 1150 * ms});
    REQUIRE(one.size() == 1);
    CHECK(one[0].times.slept == 0);
    CHECK(one[0].times.queued.sum_ns == 40 * ms);
}

TEST_CASE("a long-lived thread stays within its bound, with exact sums") {
    ThreadTimesHistory history(1000);
    wire::ThreadTimes all;
    for (std::uint64_t i = 1; i <= 50'000; ++i) {
        wire::ThreadTimes one = times(i * 100, 30, 0, 70);
        one.slices.add(i * 1000);
        history.add(1 + i % 3, one);
        all.add(one);
    }
    std::size_t stretches = 0;
    wire::ThreadTimes sum;
    for (const ThreadLife& life : history.lives()) {
        stretches += life.stretches.size();
        std::uint64_t before = 0;
        for (const ThreadStretch& stretch : life.stretches) {
            CHECK(stretch.start_ns >= before);
            before = stretch.times.end_ns;
            sum.add(stretch.times);
        }
    }
    CHECK(stretches <= 1000);
    CHECK(stretches >= 400);
    CHECK(sum.state_ns == all.state_ns);
    CHECK(sum.slices == all.slices);
    // Entries that are too late or have no length are left out.
    history.add(1, times(100, 30, 0, 70));
    history.add(1, times(9'000'000, 0, 0, 0));
    CHECK(history.end_ns() == 5'000'000 * ms);
}

TEST_CASE("a batch with times of an unknown thread, or out of range, is refused") {
    for (const bool unknown_thread : {true, false}) {
        Scene scene;
        wire::ThreadTimes bad = times(10, 5, 0, 0);
        if (!unknown_thread) bad.end_ns = UINT64_MAX;
        scene.add_times(unknown_thread ? 99 : scene.a, bad);
        CHECK_FALSE(scene.store.apply(scene.maker.take()));
    }
}

}  // namespace flamewire::profile
