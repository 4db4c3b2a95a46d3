// Counters of a whole recording in its batches: consecutive intervals that add up to the totals, marked gaps, and
// counters by thread and CPU on demand.
#include <catch2/catch.hpp>
#include <sched.h>
#include <unistd.h>

#include <map>
#include <string>

#include "recorded.h"

using namespace flamewire;
using namespace flamewire::agent;

namespace {

struct NamedValue {
    std::string name, part;
    wire::CounterValue value;
    std::uint32_t tid = 0;
};
struct Reading {
    std::uint64_t start_ns = 0, end_ns = 0;
    bool after_gap = false;
    std::vector<NamedValue> values;
};

// All readings of a recording with one epoch, with names resolved as a server does.
std::vector<Reading> readings_of(const MemorySink& sink) {
    std::map<wire::Id, std::string> strings{{0, ""}};
    std::map<wire::Id, std::uint32_t> threads;
    std::vector<Reading> readings;
    for (const wire::Batch& batch : sink.batches) {
        REQUIRE(batch.epoch == 1);
        for (std::size_t i = 0; i < batch.strings.size(); ++i)
            strings[batch.string_base + static_cast<wire::Id>(i)] = batch.strings[i];
        for (std::size_t i = 0; i < batch.threads.size(); ++i)
            threads[batch.thread_base + static_cast<wire::Id>(i)] = batch.threads[i].tid;
        for (const wire::CounterReading& reading : batch.counters) {
            Reading named{reading.start_ns, reading.end_ns, reading.after_gap, {}};
            REQUIRE_FALSE(reading.values.empty());
            for (const wire::CounterValue& value : reading.values) {
                REQUIRE(strings.contains(value.name));
                REQUIRE((value.thread == 0 || threads.contains(value.thread)));
                named.values.push_back(
                    {strings[value.name], strings[value.part], value, value.thread == 0 ? 0 : threads[value.thread]});
            }
            readings.push_back(std::move(named));
        }
    }
    return readings;
}

enum class CounterScope { total, thread, cpu };
std::vector<Reading> of_scope(const std::vector<Reading>& readings, CounterScope scope) {
    std::vector<Reading> found;
    for (const Reading& reading : readings) {
        const wire::CounterValue& first = reading.values.front().value;
        const CounterScope is = first.thread != 0       ? CounterScope::thread
                                : first.cpu_plus_1 != 0 ? CounterScope::cpu
                                                        : CounterScope::total;
        if (is == scope) found.push_back(reading);
    }
    return found;
}

std::uint64_t sum_of(const std::vector<Reading>& readings, std::string_view name) {
    std::uint64_t sum = 0;
    for (const Reading& reading : readings)
        for (const NamedValue& named : reading.values)
            if (named.name == name) sum += named.value.value;
    return sum;
}

RecordingPlan counting_plan(std::uint32_t pid, std::string stat) {
    RecordingPlan plan = plan_for(pid);
    plan.settings.events = "none";
    plan.settings.stat = std::move(stat);
    plan.wanted = *parse_requested(plan.settings, real_sysfs());
    return plan;
}

std::uint64_t total(const Recorder& recorder, std::string_view name) {
    for (const counters::Sum& sum : recorder.counter_totals().sums)
        if (sum.name == name) return sum.value;
    return 0;
}

// Compares a thread's CPU time with the elapsed time. The agent reads the clock and then the counters, and may wait for
// a CPU in between.
bool within(std::uint64_t cpu_ns, std::uint64_t elapsed_ns) { return cpu_ns <= elapsed_ns + 50'000'000; }

}  // namespace

TEST_CASE("counting without sampling: intervals are consecutive and add up to the totals") {
    if (!perf_works()) return;
    Burner burner;
    MemorySink sink;
    const auto recorder = record(counting_plan(burner.pid(), "task-clock,page-faults,cycles"), sink);
    CHECK(recorder->running().events.empty());
    CHECK(recorder->running().counters.size() == 3);
    CHECK(soon([&] { return total(*recorder, "task-clock") > 700'000'000; }));
    recorder->stop("stopped", 0);
    CHECK(sink.samples() == 0);
    CHECK(sink.batches.front().recording->frequency_hz == 0);

    const std::vector<Reading> readings = readings_of(sink);
    REQUIRE(readings.size() >= 3);
    CHECK_FALSE(readings.front().after_gap);
    std::uint64_t elapsed = 0;
    for (std::size_t i = 0; i < readings.size(); ++i) {
        CHECK(readings[i].end_ns > readings[i].start_ns);
        if (i > 0) CHECK(readings[i].start_ns == readings[i - 1].end_ns);
        elapsed += readings[i].end_ns - readings[i].start_ns;
        CHECK(readings[i].values.size() == 3);
    }
    const CounterTotals totals = recorder->counter_totals();
    CHECK(totals.elapsed_ns == elapsed);
    REQUIRE(totals.sums.size() == 3);
    CHECK(totals.sums[0].unit == "ns");
    CHECK(totals.sums[0].value == sum_of(readings, "task-clock"));
    CHECK(totals.sums[1].value == sum_of(readings, "page-faults"));
    // It burns all the CPU time that it gets. Other work may reduce that, but it is never more than this.
    CHECK(within(totals.sums[0].value, elapsed));
    CHECK(totals.sums[0].running_ns == totals.sums[0].enabled_ns);
}

TEST_CASE("counters beside samples, and a pause that stops both") {
    if (!perf_works()) return;
    Burner burner;
    MemorySink sink;
    const auto recorder = record(plan_for(burner.pid()), sink);
    CHECK(soon([&] { return recorder->accounting().rows_samples > 100; }));
    REQUIRE(recorder->execute(Pause{}).has_value());
    ::usleep(150'000);  // pending counts are sent with the next batches
    const std::uint64_t paused = total(*recorder, "task-clock");
    ::usleep(700'000);
    CHECK(total(*recorder, "task-clock") == paused);
    REQUIRE(recorder->execute(Resume{}).has_value());
    CHECK(soon([&] { return total(*recorder, "task-clock") > paused + 1'000'000'000; }));
    recorder->stop("stopped", 0);
    const std::vector<Reading> readings = readings_of(sink);
    int gaps = 0;
    for (std::size_t i = 1; i < readings.size(); ++i) {
        CHECK(readings[i].after_gap == (readings[i].start_ns != readings[i - 1].end_ns));
        if (!readings[i].after_gap) continue;
        ++gaps;
        CHECK(readings[i].start_ns - readings[i - 1].end_ns > 600'000'000);
    }
    CHECK(gaps == 1);
    // The sampled weight and the counted CPU time cover the same time.
    std::uint64_t weight = 0;
    for (const wire::Batch& batch : sink.batches)
        for (const wire::Row& row : batch.rows) weight += row.weight;
    CHECK(static_cast<double>(weight) == Approx(static_cast<double>(total(*recorder, "task-clock"))).epsilon(0.05));
}

// ThreadSanitizer runs an additional thread in each process.
#ifdef FLAMEWIRE_SANITIZED
constexpr std::int64_t sanitizer_threads = 1;
#else
constexpr std::int64_t sanitizer_threads = 0;
#endif

TEST_CASE("by thread and by CPU on demand, in addition to the totals") {
    if (!perf_works()) return;
    Burner burner;
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    REQUIRE(::sched_setaffinity(static_cast<pid_t>(burner.pid()), sizeof first, &first) == 0);
    MemorySink sink;
    const auto recorder = record(counting_plan(burner.pid(), "task-clock,page-faults,cycles"), sink);
    CHECK(recorder->running().count_by == CountBy::total);
    const auto burn = [&] {
        const std::uint64_t before = total(*recorder, "task-clock");
        CHECK(soon([&] { return total(*recorder, "task-clock") > before + 600'000'000; }));
    };
    REQUIRE(recorder->execute(SetCountBy{CountBy::thread}).has_value());
    CHECK(recorder->running().count_by == CountBy::thread);
    burn();
    REQUIRE(recorder->execute(SetCountBy{CountBy::cpu}).has_value());
    burn();
    REQUIRE(recorder->execute(SetCountBy{CountBy::total}).has_value());
    burn();
    recorder->stop("stopped", 0);

    const std::vector<Reading> all = readings_of(sink);
    const std::vector<Reading> totals = of_scope(all, CounterScope::total);
    for (std::size_t i = 1; i < totals.size(); ++i) CHECK(totals[i].start_ns == totals[i - 1].end_ns);
    CHECK(sum_of(totals, "task-clock") == total(*recorder, "task-clock"));
    for (const CounterScope scope : {CounterScope::thread, CounterScope::cpu}) {
        const std::vector<Reading> detail = of_scope(all, scope);
        REQUIRE(detail.size() >= 2);
        CHECK(detail.front().after_gap);
        for (std::size_t i = 1; i < detail.size(); ++i) {
            CHECK(detail[i].start_ns == detail[i - 1].end_ns);
            CHECK_FALSE(detail[i].after_gap);
        }
        for (const Reading& reading : detail)
            for (const NamedValue& named : reading.values) {
                const std::int64_t base = scope == CounterScope::thread ? burner.pid() : 0;
                CHECK(named.tid - base >= 0);
                CHECK(named.tid - base <= sanitizer_threads);
                CHECK(named.value.cpu_plus_1 == (scope == CounterScope::cpu ? 1 : 0));
            }
        CHECK(within(sum_of(detail, "task-clock"), detail.back().end_ns - detail.front().start_ns));
        CHECK(sum_of(detail, "task-clock") >= 500'000'000);
    }
}

TEST_CASE("a change of counters: the totals continue") {
    if (!perf_works()) return;
    Burner burner;
    MemorySink sink;
    const auto recorder = record(counting_plan(burner.pid(), "task-clock,page-faults"), sink);
    CHECK(soon([&] { return total(*recorder, "task-clock") > 300'000'000; }));
    Settings settings = recorder->running().settings;
    settings.stat = "context-switches,task-clock";
    REQUIRE(
        recorder->execute(std::make_shared<const Change>(settings, *parse_requested(settings, real_sysfs()), here()))
            .has_value());
    CHECK(recorder->running().counters.size() == 2);
    const std::uint64_t changed_at = total(*recorder, "task-clock");
    CHECK(soon([&] { return total(*recorder, "task-clock") > changed_at + 300'000'000; }));
    recorder->stop("stopped", 0);
    const std::vector<Reading> readings = readings_of(sink);
    CHECK(sum_of(readings, "task-clock") == total(*recorder, "task-clock"));
    REQUIRE(recorder->counter_totals().sums.size() == 3);
    int gaps = 0;
    for (const Reading& reading : readings) gaps += reading.after_gap ? 1 : 0;
    CHECK(gaps == 1);
    for (const Reading& reading : readings) CHECK(reading.values.size() == 2);
}
