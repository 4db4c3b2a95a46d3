// The table in the layout of `perf stat`, compared with lines that perf printed.
#include <catch2/catch.hpp>

#include <algorithm>

#include "counters/derive.h"
#include "counters/sched_table.h"

using namespace flamewire;
using namespace flamewire::counters;
using wire::CounterStatus;

namespace {

constexpr std::uint64_t s = 1'000'000'000;

std::string table(const std::vector<Sum>& sums, std::uint64_t elapsed_ns) {
    return perf_stat_table(derive(sums, elapsed_ns), "process id '4242'", elapsed_ns);
}

}  // namespace

TEST_CASE("The layout is that of perf stat") {
    const std::vector<Sum> sums{
        {"cycles", "cycles", {}, CounterStatus::unsupported, 0, 0, 0},
        {"page-faults", "faults", {}, CounterStatus::counted, 9'376, s, s},
        {"context-switches", "switches", {}, CounterStatus::counted, 124, s, s},
        {"cpu-migrations", "migrations", {}, CounterStatus::counted, 3, s, s},
        {"task-clock", "ns", {}, CounterStatus::counted, 129'521'000, s, s},
        {"major-faults", "faults", {}, CounterStatus::counted, 0, s, s},
    };
    CHECK(table(sums, 307'754'262) ==
          "\n"
          " Performance counter stats for process id '4242':\n"
          "\n"
          "   <not supported>      cycles\n"
          "             9,376      page-faults                      #   72.390 K/sec\n"
          "               124      context-switches                 #  957.374 /sec\n"
          "                 3      cpu-migrations                   #   23.162 /sec\n"
          "            129.52 msec task-clock                       #    0.421 CPUs utilized\n"
          "                 0      major-faults                     #    0.000 /sec\n"
          "\n"
          "       0.307754262 seconds time elapsed\n"
          "\n");
}

TEST_CASE("Multiplexed counters show their share of time, and instructions have two figures") {
    const std::vector<Sum> sums{
        {"cycles", "cycles", {}, CounterStatus::counted, 1'500'000'000, s, s / 2},
        {"instructions", "instructions", {}, CounterStatus::counted, 6'000'000'000, s, s},
        {"stalled-cycles-frontend", "cycles", {}, CounterStatus::counted, 600'000'000, s, s},
        {"branch-instructions", "branches", {}, CounterStatus::counted, 1'250'000'000, s, s},
        {"branch-misses", "misses", {}, CounterStatus::counted, 12'500'000, s, s},
        {"task-clock", "ns", {}, CounterStatus::counted, s, s, s},
    };
    CHECK(table(sums, s) ==
          "\n"
          " Performance counter stats for process id '4242':\n"
          "\n"
          "     3,000,000,000      cycles                           #    3.000 GHz                      (50.00%)\n"
          "     6,000,000,000      instructions                     #    2.00  insn per cycle\n"
          "                                                         #    0.10  stalled cycles per insn\n"
          "       600,000,000      stalled-cycles-frontend          #   20.00% frontend cycles idle\n"
          "     1,250,000,000      branch-instructions              #    1.250 G/sec\n"
          "        12,500,000      branch-misses                    #    1.00% of all branches\n"
          "          1,000.00 msec task-clock                       #    1.000 CPUs utilized\n"
          "\n"
          "       1.000000000 seconds time elapsed\n"
          "\n");
}

TEST_CASE("A counter that was not counted shows its status, never a zero") {
    const std::vector<Sum> sums{
        {"cycles", "cycles", {}, CounterStatus::never_counts, 0, 0, 0},
        {"instructions", "instructions", {}, CounterStatus::forbidden, 0, 0, 0},
        {"branch-misses", "misses", {}, CounterStatus::not_counted, 0, s, 0},
        {"task-clock", "ns", {}, CounterStatus::counted, 0, 0, 0},
    };
    const std::string text = table(sums, s);
    CHECK(text.find("    <never counts>      cycles\n") != std::string::npos);
    CHECK(text.find("   <not permitted>      instructions\n") != std::string::npos);
    CHECK(text.find("     <not counted>      branch-misses\n") != std::string::npos);
    CHECK(text.find("     <not counted> msec task-clock\n") != std::string::npos);
}

TEST_CASE("Parts of a hybrid CPU are below their counter; the command's CPU time is at the end") {
    const std::vector<Sum> sums{
        {"cycles", "cycles", "cpu_core", CounterStatus::counted, 2'000, 2 * s, s},
        {"cycles", "cycles", "cpu_atom", CounterStatus::counted, 1'000, 2 * s, s},
    };
    const std::string text =
        perf_stat_table(derive(sums, s), "'make -j2'", s, CommandTimes{1'250'000'000, 500'000'001});
    CHECK(text ==
          "\n"
          " Performance counter stats for 'make -j2':\n"
          "\n"
          "             3,000      cycles\n"
          "             2,000        cpu_core/cycles/                                                   (50.00%)\n"
          "             1,000        cpu_atom/cycles/                                                   (50.00%)\n"
          "\n"
          "       1.000000000 seconds time elapsed\n"
          "\n"
          "       1.250000000 seconds user\n"
          "       0.500000001 seconds sys\n"
          "\n");
}

TEST_CASE("Thousands are separated everywhere") {
    const auto first_line = [](std::uint64_t value) {
        const std::string text = table({{"r1", "events", {}, CounterStatus::counted, value, s, s}}, 0);
        const std::size_t end = text.find("      r1");
        return text.substr(text.find(":\n\n") + 3, end - text.find(":\n\n") - 3);
    };
    CHECK(first_line(0) == "                 0");
    CHECK(first_line(999) == "               999");
    CHECK(first_line(1'000) == "             1,000");
    CHECK(first_line(123'456) == "           123,456");
    CHECK(first_line(9'007'199'254'740'992) == "9,007,199,254,740,992");
}

TEST_CASE("The scheduling table has the column groups that fit the terminal") {
    SchedLine line{.name = "worker", .tid = 42, .times = {}};
    line.times.state_ns[0] = 1'500'000;
    const auto lines_of = [&](std::size_t width) {
        std::vector<std::string> lines;
        const std::string table = sched_table({&line}, 0, width);
        for (std::size_t at = 0; at < table.size(); at = table.find('\n', at) + 1)
            lines.push_back(table.substr(at, table.find('\n', at) - at));
        return lines;
    };
    const auto whole = lines_of(0);
    REQUIRE(whole.size() == 4);
    CHECK(whole[2].starts_with("worker:42                    1.500"));
    CHECK(whole[2].size() == 184);
    CHECK(whole[1].size() == 184);  // the names are above their numbers
    CHECK(lines_of(184) == whole);
    for (const std::size_t width : {183U, 137U, 120U, 80U}) {
        const auto cut = lines_of(width);
        REQUIRE(cut.size() == 5);
        CHECK(cut[4].find("terminal of 184") != std::string::npos);
        for (std::size_t i = 0; i < 4; ++i) {
            CHECK(cut[i].size() <= width);
            CHECK(whole[i].starts_with(cut[i]));
            CHECK(cut[i].find_last_of('|') != cut[i].size() - 1);
        }
    }
    CHECK(lines_of(183)[2].size() == 137);
    CHECK(lines_of(80)[2].size() == 64);
}
