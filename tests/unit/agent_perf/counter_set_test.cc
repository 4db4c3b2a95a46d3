// Groups, differences and thread starts on a fake kernel with values from the test. Expected values are computed by
// hand.
#include "agent/perf/counter_set.h"

#include <catch2/catch.hpp>
#include <unistd.h>

#include <numeric>

#include "base/clock.h"
#include "fake_pmu.h"
#include "fake_sysfs.h"

using namespace flamewire;
using namespace flamewire::agent;
using wire::CounterStatus;

namespace {

const std::uint32_t self = static_cast<std::uint32_t>(::getpid());
constexpr std::uint64_t cycles = PERF_COUNT_HW_CPU_CYCLES, instructions = PERF_COUNT_HW_INSTRUCTIONS;
constexpr std::uint64_t faults = PERF_COUNT_SW_PAGE_FAULTS;

// A machine with one thread to count: that of this program.
struct Fixture {
    FakePmu pmu;
    std::vector<Counter> counters;
    std::unique_ptr<CounterSet> set;

    explicit Fixture(std::string_view list) {
        Capabilities capabilities;
        capabilities.perf_events = capabilities.kernel_samples = true;
        counters = choose_counters(*parse_counters(list, fake_sysfs(plain_x86())), false, capabilities, pmu.calls());
    }
    void open(CounterSetOptions options = {}) {
        options.pids = {self};
        auto opened = CounterSet::open(options, counters, pmu.calls());
        if (!opened) FAIL(opened.error().message);
        set = *std::move(opened);
    }
    FakePmu::Event& event(std::uint32_t type, std::uint64_t config) {
        return pmu.event_of(static_cast<pid_t>(self), type, config);
    }
    std::vector<std::size_t> group_sizes() {
        std::vector<std::size_t> sizes;
        for (const int leader : pmu.leaders(static_cast<pid_t>(self)))
            sizes.push_back(1 + pmu.events.at(leader).followers.size());
        return sizes;
    }
};

constexpr std::string_view six = "cycles,instructions,cache-references,cache-misses,branch-instructions,branch-misses";

TaskRecord fork_of(std::uint32_t parent, std::uint32_t child, std::uint64_t time_ns) {
    return {false, self, self, child, parent, time_ns};
}
TaskRecord exit_of(std::uint32_t tid) { return {true, self, self, tid, tid, monotonic_ns()}; }

}  // namespace

TEST_CASE("counter groups: as many hardware events as the PMU accepts, and software events separately") {
    Fixture fixture(std::string(six) + ",page-faults,task-clock");
    SECTION("six do not fit into four counters") {
        fixture.open();
        CHECK(fixture.group_sizes() == std::vector<std::size_t>{4, 2, 2});
    }
    SECTION("eight hardware counters fit all of them") {
        fixture.pmu.counters = fixture.pmu.free_counters = 8;
        fixture.open();
        CHECK(fixture.group_sizes() == std::vector<std::size_t>{6, 2});
    }
    SECTION("a group that opens but is never scheduled is too large, too") {
        fixture.pmu.free_counters = 3;
        fixture.open();
        CHECK(fixture.group_sizes() == std::vector<std::size_t>{3, 3, 2});
    }
    SECTION("on kernels that cannot read groups of inherited events, each is separate") {
        fixture.pmu.groups_of_inherited = false;
        fixture.open();
        CHECK(fixture.group_sizes() == std::vector<std::size_t>(8, 1));
        fixture.event(PERF_TYPE_HARDWARE, cycles).value = 7;
        fixture.event(PERF_TYPE_HARDWARE, cycles).enabled = 10;
        fixture.event(PERF_TYPE_HARDWARE, cycles).running = 9;
        const std::vector<CounterDelta> deltas = fixture.set->read();
        CHECK((deltas[0].value == 7 && deltas[0].enabled_ns == 10 && deltas[0].running_ns == 9));
        CHECK(deltas[1].value == 0);
    }
    fixture.set.reset();
    CHECK(fixture.pmu.events.empty());
}

TEST_CASE("counter readings are differences, and their sum is the total") {
    Fixture fixture("cycles,instructions,page-faults");
    fixture.open();
    auto& leader = fixture.event(PERF_TYPE_HARDWARE, cycles);
    auto& follower = fixture.event(PERF_TYPE_HARDWARE, instructions);
    auto& software = fixture.event(PERF_TYPE_SOFTWARE, faults);
    CHECK(follower.leader >= 0);
    std::vector<std::uint64_t> sums(3, 0);
    const auto read = [&] {
        std::vector<CounterDelta> deltas = fixture.set->read();
        REQUIRE(deltas.size() == 3);
        for (std::size_t i = 0; i < 3; ++i) {
            CHECK(deltas[i].counter == i);
            sums[i] += deltas[i].value;
        }
        return deltas;
    };
    leader.value = 1'000;
    follower.value = 500;
    leader.enabled = 400;
    leader.running = 100;  // a quarter
    software.value = 3;
    software.enabled = software.running = 400;
    auto deltas = read();
    CHECK((deltas[0].value == 1'000 && deltas[0].enabled_ns == 400 && deltas[0].running_ns == 100));
    CHECK((deltas[1].value == 500 && deltas[1].enabled_ns == 400 && deltas[1].running_ns == 100));
    CHECK((deltas[2].value == 3 && deltas[2].enabled_ns == 400 && deltas[2].running_ns == 400));

    // An interval in which the group was never scheduled.
    leader.enabled = 900;
    software.value = 10;
    software.enabled = software.running = 900;
    deltas = read();
    CHECK(deltas[0].status == CounterStatus::not_counted);
    CHECK((deltas[0].value == 0 && deltas[0].enabled_ns == 500 && deltas[0].running_ns == 0));
    CHECK((deltas[2].status == CounterStatus::counted && deltas[2].value == 7));

    // An interval in which the target slept: the counter is valid, and its value is 0.
    deltas = read();
    CHECK((deltas[0].status == CounterStatus::counted && deltas[0].value == 0 && deltas[0].enabled_ns == 0));

    // A total that decreases must not produce a huge difference, and nothing is counted twice.
    leader.value = 990;
    CHECK(read()[0].value == 0);
    leader.value = 1'100;
    CHECK(read()[0].value == 100);
    CHECK(sums == std::vector<std::uint64_t>{1'100, 500, 10});
}

TEST_CASE("counters with a failure status are not opened, and report it with every reading") {
    Fixture fixture("page-faults");
    fixture.counters.push_back(fixture.counters.front());
    fixture.counters.back().name = "cycles";
    fixture.counters.back().status = CounterStatus::unsupported;
    fixture.open();
    CHECK(fixture.set->descriptors() == 1);
    const auto deltas = fixture.set->read();
    REQUIRE(deltas.size() == 2);
    CHECK((deltas[1].counter == 1 && deltas[1].status == CounterStatus::unsupported));
}

TEST_CASE("a counter that the target's threads refuse does not affect the others") {
    Fixture fixture("cycles,instructions");
    fixture.pmu.counters = 1;  // no group fits …
    fixture.open();
    CHECK(fixture.group_sizes() == std::vector<std::size_t>{1, 1});
    // … and one event disappears before the target is opened.
    Fixture late("cycles,instructions");
    late.pmu.missing = {instructions};
    late.open();
    const auto deltas = late.set->read();
    CHECK(deltas[0].status == CounterStatus::counted);
    CHECK(deltas[1].status == CounterStatus::unsupported);
}

TEST_CASE("no thread is left, or none may be opened") {
    Fixture fixture("page-faults");
    fixture.pmu.refused = {{static_cast<pid_t>(self), ESRCH}};
    CHECK(CounterSet::open({.pids = {self}}, fixture.counters, fixture.pmu.calls()).error().code ==
          ErrorCode::not_found);
    fixture.pmu.refused = {{static_cast<pid_t>(self), EACCES}};
    CHECK(CounterSet::open({.pids = {self}}, fixture.counters, fixture.pmu.calls()).error().code ==
          ErrorCode::permission);
    CHECK(CounterSet::open({.pids = {4'194'304}}, fixture.counters, fixture.pmu.calls()).error().code ==
          ErrorCode::not_found);
    // Without counters, a missing process is not an error.
    CHECK(CounterSet::open({.pids = {4'194'304}}, {}, fixture.pmu.calls()));
}

TEST_CASE("a thread inherits if its parent was opened before it started, else it is opened") {
    Fixture fixture("page-faults,task-clock");
    const std::uint64_t before = monotonic_ns();
    fixture.open();
    const std::uint64_t after = monotonic_ns();
    CHECK(fixture.set->descriptors() == 2);
    fixture.set->on_task(fork_of(self, 900'001, before));
    CHECK(fixture.set->descriptors() == 4);
    fixture.set->on_task(fork_of(self, 900'001, before));  // a copy of the record
    CHECK(fixture.set->descriptors() == 4);
    fixture.set->on_task(fork_of(self, 900'002, after));
    fixture.set->on_task(fork_of(900'002, 900'003, after));  // a child of a thread that inherited
    CHECK(fixture.set->descriptors() == 4);

    // All values add up to one total.
    fixture.event(PERF_TYPE_SOFTWARE, faults).value = 10;
    fixture.pmu.event_of(900'001, PERF_TYPE_SOFTWARE, faults).value = 5;
    CHECK(fixture.set->read()[0].value == 15);
    // The thread without children is closed after its last reading. The other may have passed its event on.
    fixture.pmu.event_of(900'001, PERF_TYPE_SOFTWARE, faults).value = 9;
    fixture.event(PERF_TYPE_SOFTWARE, faults).value = 11;
    fixture.set->on_task(exit_of(900'001));
    fixture.set->on_task(exit_of(self));
    CHECK(fixture.set->read()[0].value == 5);
    CHECK(fixture.set->descriptors() == 2);
    CHECK(fixture.set->read()[0].value == 0);
}

TEST_CASE("by thread: opened when the thread starts, and read for the last time when it ends") {
    Fixture fixture("page-faults,task-clock");
    fixture.open({.by = CountBy::thread});
    CHECK(fixture.event(PERF_TYPE_SOFTWARE, faults).attr.inherit == 0);
    for (std::uint32_t round = 0; round < 3; ++round) {
        const std::uint32_t tid = 900'001 + round;
        fixture.set->on_task(fork_of(self, tid, monotonic_ns()));
        auto& event = fixture.pmu.event_of(static_cast<pid_t>(tid), PERF_TYPE_SOFTWARE, faults);
        event.value = 7;
        event.enabled = event.running = 100;
        fixture.set->on_task(exit_of(tid));
        CHECK(fixture.set->descriptors() == 2);
        const auto deltas = fixture.set->read();
        REQUIRE(deltas.size() == 2);  // none for the main thread: it did not run
        CHECK((deltas[0].tid == tid && deltas[0].pid == self && deltas[0].value == 7 && deltas[0].counter == 0));
        CHECK((deltas[1].counter == 1 && deltas[1].enabled_ns == 100));
        CHECK(fixture.set->read().empty());
    }
}

TEST_CASE("enabling and disabling applies to the group leaders, and events opened disabled stay so") {
    Fixture fixture("cycles,instructions,page-faults");
    fixture.open({.start_disabled = true});
    CHECK_FALSE(fixture.event(PERF_TYPE_HARDWARE, cycles).on);
    CHECK_FALSE(fixture.event(PERF_TYPE_SOFTWARE, faults).on);
    CHECK(fixture.event(PERF_TYPE_HARDWARE, instructions).on);  // it follows its leader
    REQUIRE(fixture.set->enable());
    CHECK(fixture.event(PERF_TYPE_HARDWARE, cycles).on);
    CHECK(fixture.event(PERF_TYPE_SOFTWARE, faults).on);
    REQUIRE(fixture.set->disable());
    CHECK_FALSE(fixture.event(PERF_TYPE_HARDWARE, cycles).on);
    Fixture launched("cycles,page-faults");
    launched.open({.enable_on_exec = true});
    CHECK(launched.event(PERF_TYPE_HARDWARE, cycles).attr.enable_on_exec == 1);
    CHECK(launched.event(PERF_TYPE_HARDWARE, cycles).attr.disabled == 1);
}

TEST_CASE("threads without descriptors are counted, and open counters still work") {
    Fixture fixture("page-faults,task-clock");
    fixture.pmu.descriptors = 3;
    fixture.open();
    fixture.set->on_task(fork_of(self, 900'001, 1));
    CHECK(fixture.set->threads_skipped() == 1);
    fixture.event(PERF_TYPE_SOFTWARE, faults).value = 4;
    CHECK(fixture.set->read()[0].value == 4);
    // A counter that lacks a descriptor must not be reported as "unsupported".
    Fixture half("cycles,page-faults");
    half.pmu.descriptors = 1;
    half.open();
    const auto deltas = half.set->read();
    CHECK(deltas[0].status == CounterStatus::counted);
    CHECK(deltas[1].status == CounterStatus::not_counted);
    Fixture none("cycles");
    none.pmu.descriptors = 0;
    CHECK(CounterSet::open({.pids = {self}}, none.counters, none.pmu.calls()).error().code == ErrorCode::busy);
}

TEST_CASE("hybrid: each kind of core has its groups, and parts are distinguished") {
    FakePmu pmu;
    Capabilities capabilities;
    capabilities.perf_events = capabilities.kernel_samples = true;
    const auto wanted = parse_counters("cycles,instructions,page-faults", fake_sysfs(intel_hybrid()));
    REQUIRE(wanted);
    const std::vector<Counter> counters = choose_counters(*wanted, false, capabilities, pmu.calls());
    REQUIRE(counters.size() == 5);
    CHECK((counters[0].name == "cycles" && counters[1].name == "cycles" && counters[0].part != counters[1].part));
    CHECK((counters[4].name == "page-faults" && counters[4].part.empty()));
    auto set = CounterSet::open({.pids = {self}}, counters, pmu.calls());
    REQUIRE(set);
    CHECK(pmu.leaders(static_cast<pid_t>(self)).size() == 3);
    for (const int leader : pmu.leaders(static_cast<pid_t>(self))) {
        const auto& event = pmu.events.at(leader);
        for (const int follower : event.followers)
            CHECK(event.attr.config >> 32 == pmu.events.at(follower).attr.config >> 32);
    }
    CHECK((*set)->read().size() == 5);
}

TEST_CASE("by CPU: time on other CPUs does not count as time without a counter") {
    Fixture fixture("cycles");
    fixture.open({.by = CountBy::cpu});
    const auto pid = static_cast<pid_t>(self);
    if (fixture.pmu.leaders(pid).size() < 2) {
        WARN("one CPU only: shares of CPUs were NOT tested");
        return;
    }
    // 900 ns of CPU time: 100 on the first CPU, 200 on the second. For the other 600, another event was scheduled.
    const auto set = [&](int cpu, std::uint64_t value, std::uint64_t running) {
        auto& event = fixture.pmu.event_of(pid, PERF_TYPE_HARDWARE, cycles, cpu);
        event.value = value;
        event.enabled = 900;
        event.running = running;
    };
    for (const int leader : fixture.pmu.leaders(pid)) fixture.pmu.events.at(leader).enabled = 900;
    set(0, 10, 100);
    set(1, 40, 200);
    const auto deltas = fixture.set->read();
    REQUIRE(deltas.size() == 2);
    CHECK((deltas[0].cpu_plus_1 == 1 && deltas[0].value == 10));
    CHECK((deltas[0].running_ns == 100 && deltas[0].enabled_ns == 300));
    CHECK((deltas[1].cpu_plus_1 == 2 && deltas[1].value == 40));
    CHECK((deltas[1].running_ns == 200 && deltas[1].enabled_ns == 600));
}
