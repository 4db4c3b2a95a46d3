// Which events are counted, in which mode and under which name, and the status of those that cannot be counted.
#include "agent/perf/counter_spec.h"

#include <catch2/catch.hpp>

#include "fake_pmu.h"
#include "fake_sysfs.h"

using namespace flamewire;
using namespace flamewire::agent;
using wire::CounterStatus;

namespace {

Capabilities privileged() {
    Capabilities capabilities;
    capabilities.perf_events = true;
    capabilities.kernel_samples = true;
    return capabilities;
}

std::vector<Counter> choose(FakePmu& pmu, std::string_view list, Capabilities capabilities = privileged(),
                            bool user_only = false, const FakeTree& tree = plain_x86()) {
    pmu.kernel_mode = capabilities.kernel_samples;
    auto wanted = parse_counters(list, fake_sysfs(tree));
    REQUIRE(wanted);
    auto counters = choose_counters(*wanted, user_only, capabilities, pmu.calls());
    CHECK(pmu.events.empty());
    return counters;
}

std::vector<std::string> names(const std::vector<Counter>& counters) {
    std::vector<std::string> all;
    for (const Counter& counter : counters) all.push_back(counter.name);
    return all;
}

const Counter& find(const std::vector<Counter>& counters, std::string_view name) {
    for (const Counter& counter : counters)
        if (counter.name == name) return counter;
    FAIL("no counter " << name);
    return counters.front();
}

}  // namespace

TEST_CASE("counters: by default the ten usual ones, and extra ones that work") {
    FakePmu pmu;
    pmu.missing = {PERF_COUNT_HW_STALLED_CYCLES_FRONTEND, PERF_COUNT_HW_BRANCH_MISSES};
    pmu.silent = {PERF_COUNT_HW_STALLED_CYCLES_BACKEND};
    const std::vector<Counter> counters = choose(pmu, "default");
    const std::vector<std::string> all = names(counters);
    const std::vector<std::string> first(all.begin(), all.begin() + 10);
    CHECK(first == std::vector<std::string>{"cycles", "instructions", "cache-references", "cache-misses",
                                            "branch-instructions", "branch-misses", "page-faults", "context-switches",
                                            "cpu-migrations", "task-clock"});
    // Of the ten, those that do not work have a status. Extra ones that do not work are left out.
    CHECK(find(counters, "branch-misses").status == CounterStatus::unsupported);
    CHECK(find(counters, "minor-faults").status == CounterStatus::counted);
    CHECK(find(counters, "LLC-load-misses").status == CounterStatus::counted);
    CHECK(std::count(all.begin(), all.end(), "stalled-cycles-frontend") == 0);
    CHECK(std::count(all.begin(), all.end(), "stalled-cycles-backend") == 0);
    CHECK(find(counters, "task-clock").unit == "ns");
    CHECK(names(choose(pmu, "")) == all);
    CHECK(choose(pmu, "none").empty());
}

TEST_CASE("counters: each one requested by name has its status") {
    FakePmu pmu;
    pmu.missing = {PERF_COUNT_HW_CPU_CYCLES};
    pmu.silent = {PERF_COUNT_HW_INSTRUCTIONS};
    const std::vector<Counter> counters =
        choose(pmu, "cycles,instructions,branch-misses,alignment-faults,r01c2,context-switches:u");
    CHECK(find(counters, "cycles").status == CounterStatus::unsupported);
    CHECK(find(counters, "instructions").status == CounterStatus::never_counts);
    CHECK(find(counters, "branch-misses").status == CounterStatus::counted);
    CHECK(find(counters, "r01c2").status == CounterStatus::counted);
#if defined(__x86_64__)
    CHECK(find(counters, "alignment-faults").status == CounterStatus::never_counts);
#endif
    // Switches happen in kernel mode, so in user mode there are none.
    CHECK(find(counters, "context-switches:u").status == CounterStatus::never_counts);
    FakePmu full;
    full.descriptors = 0;  // not a property of the event
    CHECK(find(choose(full, "page-faults"), "page-faults").status == CounterStatus::counted);
    CHECK_FALSE(parse_counters("cycles,nonsense", fake_sysfs(plain_x86())));
    CHECK(parse_counters("default,cycles", fake_sysfs(plain_x86())).error().code == ErrorCode::invalid);
}

TEST_CASE("counters: without access to kernel mode, names show it and counters that need it are forbidden") {
    FakePmu pmu;
    Capabilities ordinary = privileged();
    ordinary.kernel_samples = false;
    const std::vector<Counter> counters = choose(
        pmu, "cycles,page-faults,context-switches,cpu-migrations,task-clock,instructions:k,cycles:p,cpu/event=0x3c/",
        ordinary);
    CHECK(names(counters) == std::vector<std::string>{"cycles:u", "page-faults:u", "context-switches", "cpu-migrations",
                                                      "task-clock:u", "instructions:k", "cycles:pu",
                                                      "cpu/event=0x3c/u"});
    CHECK(find(counters, "cycles:u").status == CounterStatus::counted);
    CHECK(find(counters, "cycles:u").spec.exclude_kernel);
    CHECK(find(counters, "page-faults:u").status == CounterStatus::counted);
    for (const auto* name : {"context-switches", "cpu-migrations", "instructions:k"})
        CHECK(find(counters, name).status == CounterStatus::forbidden);
}

TEST_CASE("counters: --no-kernel applies to events that the CPU counts") {
    FakePmu pmu;
    const std::vector<Counter> counters =
        choose(pmu, "cycles,instructions:k,page-faults,context-switches", privileged(), true);
    CHECK(names(counters) == std::vector<std::string>{"cycles:u", "instructions:k", "page-faults", "context-switches"});
    CHECK_FALSE(find(counters, "instructions:k").spec.exclude_kernel);
    CHECK_FALSE(find(counters, "page-faults").spec.exclude_kernel);
    for (const Counter& counter : counters) CHECK(counter.status == CounterStatus::counted);
}

TEST_CASE("counters: the attributes count and do not sample") {
    const EventSpec spec = parse_events("instructions:kp", fake_sysfs(plain_x86()))->front();
    const perf_event_attr leader = counter_attr(spec, spec.parts.front(), {.disabled = true, .enable_on_exec = true});
    CHECK((leader.sample_period == 0 && leader.freq == 0 && leader.sample_type == 0 && leader.precise_ip == 0));
    CHECK((leader.inherit == 1 && leader.disabled == 1 && leader.enable_on_exec == 1));
    CHECK((leader.exclude_user == 1 && leader.exclude_kernel == 0));
    CHECK(leader.read_format == (PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING));
    CHECK(counter_attr(spec, spec.parts.front(), {.inherit = false, .group_read = false}).read_format ==
          (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING));
}
