// Scaling and derived figures, each value computed by hand.
#include "counters/derive.h"

#include <catch2/catch.hpp>

#include <limits>

using namespace flamewire;
using namespace flamewire::counters;
using wire::CounterStatus;

namespace {

constexpr std::uint64_t s = 1'000'000'000;

Sum counted(std::string name, std::string unit, std::uint64_t value, std::uint64_t enabled = s,
            std::uint64_t running = s) {
    return {std::move(name), std::move(unit), {}, CounterStatus::counted, value, enabled, running};
}

Sum with_status(std::string name, CounterStatus status) { return {std::move(name), "events", {}, status, 0, 0, 0}; }

const Line& line_of(const std::vector<Line>& lines, std::string_view name) {
    for (const Line& line : lines)
        if (line.sum.name == name) return line;
    FAIL("no line " << name);
    return lines.front();
}

}  // namespace

TEST_CASE("A counter that was scheduled for a quarter of its time is scaled by four") {
    const Sum quarter = counted("cycles", "cycles", 1'000, 2 * s, s / 2);
    CHECK(*scaled(quarter) == Approx(4'000));
    CHECK(*percent_counted(quarter) == Approx(25));
    const Sum whole = counted("cycles", "cycles", 1'000, 2 * s, 2 * s);
    CHECK(*scaled(whole) == 1'000);
    CHECK(*percent_counted(whole) == 100);
    // The kernel's clocks may differ by nanoseconds: values are never scaled down, and never exceed 100 %.
    const Sum longer = counted("cycles", "cycles", 1'000, s, s + 5);
    CHECK(*scaled(longer) == 1'000);
    CHECK(*percent_counted(longer) == 100);
}

TEST_CASE("A counter that was never scheduled has no value; with no enabled time, the value is the count") {
    CHECK_FALSE(scaled(counted("cycles", "cycles", 0, s, 0)));
    CHECK(*percent_counted(counted("cycles", "cycles", 0, s, 0)) == 0);
    CHECK(*scaled(counted("page-faults", "faults", 0, 0, 0)) == 0);
    CHECK_FALSE(percent_counted(counted("page-faults", "faults", 0, 0, 0)));
    CHECK_FALSE(scaled(with_status("cycles", CounterStatus::unsupported)));
    CHECK_FALSE(scaled(with_status("cycles", CounterStatus::never_counts)));
    CHECK_FALSE(scaled(with_status("cycles", CounterStatus::forbidden)));
    CHECK_FALSE(scaled(with_status("cycles", CounterStatus::not_counted)));
}

TEST_CASE("The largest numbers scale without overflow") {
    constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    // 2^64 * 2^64 / 2^62 exceeds 64 bits in the intermediate result.
    const Sum huge = counted("cycles", "cycles", most, most, most / 4);
    CHECK(*scaled(huge) == Approx(4 * 1.8446744073709552e19));
    CHECK(*percent_counted(huge) == Approx(25));
    Sum sum = counted("cycles", "cycles", most - 1, most - 1, most - 1);
    add(sum, counted("cycles", "cycles", 5, 5, 5));
    CHECK(sum.value == most);
    CHECK(sum.enabled_ns == most);
    CHECK(sum.running_ns == most);
}

TEST_CASE("Intervals add up; a single counted one gives the sum a value") {
    Sum sum = {"cycles", "cycles", {}, CounterStatus::not_counted, 0, s, 0};
    add(sum, {"cycles", "cycles", {}, CounterStatus::counted, 700, s, s / 2});
    add(sum, {"cycles", "cycles", {}, CounterStatus::not_counted, 0, s, 0});
    CHECK(sum.status == CounterStatus::counted);
    CHECK(sum.value == 700);
    CHECK(*percent_counted(sum) == Approx(100.0 * 0.5 / 3));
    CHECK(*scaled(sum) == Approx(4'200));
}

TEST_CASE("Figures equal those of perf stat") {
    // 2 s of elapsed time, 3 s of CPU time.
    const std::vector<Sum> sums{
        counted("cycles", "cycles", 9'000'000'000),
        counted("instructions", "instructions", 4'500'000'000),
        counted("stalled-cycles-frontend", "cycles", 900'000'000),
        counted("stalled-cycles-backend", "cycles", 2'250'000'000),
        counted("cache-references", "references", 200'000),
        counted("cache-misses", "misses", 15'000),
        counted("branch-instructions", "branches", 1'000'000'000),
        counted("branch-misses", "misses", 25'000'000),
        counted("L1-dcache-loads", "references", 1'000),
        counted("L1-dcache-load-misses", "misses", 100),
        counted("LLC-loads", "references", 100),
        counted("LLC-load-misses", "misses", 33),
        counted("page-faults", "faults", 6'000),
        counted("task-clock", "ns", 3 * s),
    };
    const std::vector<Line> lines = derive(sums, 2 * s);
    REQUIRE(lines.size() == sums.size());
    const auto check = [&](std::string_view name, double value, std::string_view label) {
        const Line& line = line_of(lines, name);
        REQUIRE(line.derived);
        CHECK(*line.derived == Approx(value));
        CHECK(line.derived_label == label);
    };
    check("cycles", 3.0, "GHz");
    check("instructions", 0.5, "insn per cycle");
    check("stalled-cycles-frontend", 10, "% frontend cycles idle");
    check("stalled-cycles-backend", 25, "% backend cycles idle");
    check("cache-misses", 7.5, "% of all cache refs");
    check("branch-misses", 2.5, "% of all branches");
    check("L1-dcache-load-misses", 10, "% of all L1-dcache accesses");
    check("LLC-load-misses", 33, "% of all LL-cache accesses");
    check("task-clock", 1.5, "CPUs utilized");
    // The larger of the two kinds of stall.
    REQUIRE(line_of(lines, "instructions").more.size() == 1);
    CHECK(line_of(lines, "instructions").more[0].value == Approx(0.5));
    CHECK(line_of(lines, "instructions").more[0].label == "stalled cycles per insn");
    // Rates refer to CPU time.
    CHECK_FALSE(line_of(lines, "page-faults").derived);
    CHECK(*line_of(lines, "page-faults").per_second == Approx(2'000));
    CHECK(*line_of(lines, "task-clock").per_second == Approx(1.5e9));
}

TEST_CASE("Ratios use scaled values, not raw ones") {
    const std::vector<Line> lines = derive(std::vector<Sum>{counted("cycles", "cycles", 1'000, s, s / 4),
                                                            counted("instructions", "instructions", 3'000, s, s / 2)},
                                           s);
    CHECK(*line_of(lines, "instructions").derived == Approx(1.5));  // 6,000 / 4,000
    CHECK(*line_of(lines, "cycles").value == Approx(4'000));
}

TEST_CASE("Without a clock, rates refer to the elapsed time; without a base, figures are absent") {
    const std::vector<Line> lines = derive(
        std::vector<Sum>{counted("branch-misses", "misses", 100), counted("page-faults", "faults", 10),
                         counted("cycles", "cycles", 5), with_status("branch-instructions", CounterStatus::unsupported),
                         counted("cache-references", "references", 0), counted("cache-misses", "misses", 0)},
        2 * s);
    CHECK_FALSE(line_of(lines, "branch-misses").derived);
    CHECK_FALSE(line_of(lines, "cycles").derived);
    CHECK_FALSE(line_of(lines, "cache-misses").derived);  // no ratio without references
    CHECK(*line_of(lines, "page-faults").per_second == Approx(5));
    CHECK_FALSE(line_of(lines, "branch-instructions").value);
    CHECK_FALSE(line_of(lines, "branch-instructions").per_second);
    // A target that slept: its clock did not advance.
    const std::vector<Line> asleep =
        derive(std::vector<Sum>{counted("task-clock", "ns", 0, 0, 0), counted("page-faults", "faults", 0, 0, 0)}, s);
    CHECK(*line_of(asleep, "page-faults").per_second == 0);
    CHECK(*line_of(asleep, "task-clock").derived == 0);
    CHECK(derive({}, 0).empty());
    CHECK_FALSE(derive(std::vector<Sum>{counted("task-clock", "ns", 5)}, 0)[0].derived);
}

TEST_CASE("A counter is compared with those of its own mode, however they are spelled") {
    const std::vector<Line> lines = derive(
        std::vector<Sum>{counted("cycles", "cycles", 1'000), counted("cpu-cycles:u", "cycles", 400),
                         counted("instructions:u", "instructions", 800), counted("branches:upp", "branches", 200),
                         counted("branch-misses:u", "misses", 10), counted("branch-misses:k", "misses", 10),
                         counted("cpu_core/branches/u", "branches", 50),
                         counted("cpu_core/branch-misses/u", "misses", 5), counted("sched:cycles", "events", 3),
                         counted("task-clock:u", "ns", s)},
        s);
    CHECK(*line_of(lines, "instructions:u").derived == Approx(2));
    CHECK(*line_of(lines, "branch-misses:u").derived == Approx(5));
    CHECK_FALSE(line_of(lines, "branch-misses:k").derived);
    CHECK(*line_of(lines, "cpu_core/branch-misses/u").derived == Approx(10));
    CHECK_FALSE(line_of(lines, "sched:cycles").derived);
    CHECK(*line_of(lines, "cycles").derived == Approx(1e-6));
    CHECK(*line_of(lines, "cpu-cycles:u").derived == Approx(4e-7));
}

TEST_CASE("Hybrid: one line with its parts; time on the other kind of core does not count as time without a counter") {
    // A thread ran 3 s: 1 s on P cores and 2 s on E cores. Both PMUs had free counters all the time.
    const auto part = [](std::string name, std::string pmu, std::uint64_t value, std::uint64_t running) {
        return Sum{std::move(name), "cycles", std::move(pmu), CounterStatus::counted, value, 3 * s, running};
    };
    const std::vector<Sum> sums{part("cycles", "cpu_core", 4'000, s), part("cycles", "cpu_atom", 2'000, 2 * s),
                                part("instructions", "cpu_core", 8'000, s),
                                part("instructions", "cpu_atom", 1'000, 2 * s), counted("task-clock", "ns", 3 * s)};
    const std::vector<Line> lines = derive(sums, 3 * s);
    REQUIRE(lines.size() == 3);
    const Line& cycles = line_of(lines, "cycles");
    CHECK(*cycles.value == Approx(6'000));
    CHECK(*cycles.percent_counted == Approx(100));
    REQUIRE(cycles.parts.size() == 2);
    CHECK(cycles.parts[0].sum.part == "cpu_core");
    CHECK(*cycles.parts[0].value == Approx(4'000));
    CHECK(*cycles.parts[1].value == Approx(2'000));
    CHECK(*cycles.derived == Approx(2e-6));
    const Line& instructions = line_of(lines, "instructions");
    CHECK(*instructions.derived == Approx(1.5));
    CHECK(*instructions.parts[0].derived == Approx(2));
    CHECK(*instructions.parts[1].derived == Approx(0.5));

    // Multiplexing took half of the time, so everything doubles.
    const std::vector<Line> half =
        derive(std::vector<Sum>{part("cycles", "cpu_core", 4'000, s / 2), part("cycles", "cpu_atom", 2'000, s)}, 3 * s);
    CHECK(*half[0].value == Approx(12'000));
    CHECK(*half[0].percent_counted == Approx(50));
    CHECK(*half[0].parts[0].value == Approx(8'000));

    // The part of a kind of core without the event has its status, and the other part still counts.
    const std::vector<Line> one_sided =
        derive(std::vector<Sum>{{"cycles", "cycles", "cpu_core", CounterStatus::unsupported, 0, 0, 0},
                                part("cycles", "cpu_atom", 2'000, 3 * s)},
               3 * s);
    CHECK(*one_sided[0].value == Approx(2'000));
    CHECK(one_sided[0].sum.status == CounterStatus::counted);
    CHECK_FALSE(one_sided[0].parts[0].value);
}
