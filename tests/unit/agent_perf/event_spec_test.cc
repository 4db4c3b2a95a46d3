// The event grammar on fake machines. Expected types and configs are literal numbers from linux/perf_event.h and the
// kernel's documentation.
#include "agent/perf/event_spec.h"

#include <catch2/catch.hpp>
#include <linux/perf_event.h>

#include "agent/perf/attr.h"
#include "agent/perf/event_items.h"
#include "agent/perf/pmu.h"
#include "fake_sysfs.h"

using namespace flamewire;
using namespace flamewire::agent;

namespace {

EventSpec one(std::string_view text, const FakeTree& tree) {
    auto specs = parse_events(text, fake_sysfs(tree));
    INFO(text);
    if (!specs) FAIL(specs.error().message);
    REQUIRE(specs->size() == 1);
    return specs->front();
}

Error refused(std::string_view text, const FakeTree& tree = plain_x86()) {
    auto specs = parse_events(text, fake_sysfs(tree));
    INFO(text);
    REQUIRE_FALSE(specs);
    return specs.error();
}

bool mentions(const Error& error, std::string_view part) { return error.message.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("hardware and software names") {
    struct Expected {
        const char* text;
        std::uint32_t type;
        std::uint64_t config;
        const char* unit;
    };
    const auto expected = GENERATE(
        Expected{"cycles", 0, 0, "cycles"}, Expected{"cpu-cycles", 0, 0, "cycles"},
        Expected{"instructions", 0, 1, "instructions"}, Expected{"cache-references", 0, 2, "references"},
        Expected{"cache-misses", 0, 3, "misses"}, Expected{"branches", 0, 4, "branches"},
        Expected{"branch-instructions", 0, 4, "branches"}, Expected{"branch-misses", 0, 5, "misses"},
        Expected{"bus-cycles", 0, 6, "cycles"}, Expected{"stalled-cycles-frontend", 0, 7, "cycles"},
        Expected{"stalled-cycles-backend", 0, 8, "cycles"}, Expected{"ref-cycles", 0, 9, "cycles"},
        Expected{"cpu-clock", 1, 0, "ns"}, Expected{"task-clock", 1, 1, "ns"}, Expected{"page-faults", 1, 2, "faults"},
        Expected{"faults", 1, 2, "faults"}, Expected{"context-switches", 1, 3, "switches"},
        Expected{"cs", 1, 3, "switches"}, Expected{"cpu-migrations", 1, 4, "migrations"},
        Expected{"migrations", 1, 4, "migrations"}, Expected{"minor-faults", 1, 5, "faults"},
        Expected{"major-faults", 1, 6, "faults"}, Expected{"alignment-faults", 1, 7, "faults"},
        Expected{"emulation-faults", 1, 8, "faults"},
        // cache | operation << 8 | result << 16
        Expected{"L1-dcache-loads", 3, 0x0, "references"}, Expected{"L1-dcache-load-misses", 3, 0x10000, "misses"},
        Expected{"L1-icache-load-misses", 3, 0x10001, "misses"}, Expected{"LLC-loads", 3, 0x2, "references"},
        Expected{"LLC-store-misses", 3, 0x10102, "misses"}, Expected{"dTLB-load-misses", 3, 0x10003, "misses"},
        Expected{"iTLB-load-misses", 3, 0x10004, "misses"}, Expected{"branch-loads", 3, 0x5, "references"},
        Expected{"node-prefetches", 3, 0x206, "references"}, Expected{"r01c2", 4, 0x1c2, "events"},
        Expected{"rcafe", 4, 0xcafe, "events"});
    const EventSpec spec = one(expected.text, plain_x86());
    INFO(expected.text);
    CHECK(spec.name == expected.text);
    CHECK(spec.unit == expected.unit);
    REQUIRE(spec.parts.size() == 1);
    CHECK(spec.parts[0].type == expected.type);
    CHECK(spec.parts[0].config == expected.config);
    CHECK(spec.parts[0].cpus.empty());
    CHECK_FALSE(spec.frequency_hz);
    // Like perf, faults have a period of 1 because they come in bursts. The clocks and switches come steadily.
    CHECK(spec.period == (std::string_view(expected.unit) == "faults" ? 1 : 0));
}

TEST_CASE("modifiers") {
    CHECK(one("cycles:u", plain_x86()).exclude_kernel);
    CHECK_FALSE(one("cycles:u", plain_x86()).exclude_user);
    CHECK(one("cycles:u", plain_x86()).name == "cycles:u");
    CHECK(one("cpu-clock:k", plain_x86()).exclude_user);
    const EventSpec both = one("cycles:uk", plain_x86());
    CHECK_FALSE((both.exclude_user || both.exclude_kernel));
    const EventSpec precise = one("cycles:upp", plain_x86());
    CHECK(precise.precise == 2);
    CHECK(precise.exclude_kernel);
    CHECK(mentions(refused("cpu-clock:p"), "precise"));
    CHECK(mentions(refused("cycles:pppp"), "modifier 'p'"));
    CHECK(mentions(refused("cycles:G"), "modifier 'G'"));
}

TEST_CASE("frequencies of single events, and lists") {
    auto specs = parse_events("cycles@4000, cpu-clock:u@49,cpu/event=0x3c,umask=0x1/u@7", fake_sysfs(plain_x86()));
    REQUIRE(specs);
    REQUIRE(specs->size() == 3);
    CHECK(*(*specs)[0].frequency_hz == 4000);
    CHECK((*specs)[0].name == "cycles");
    CHECK(*(*specs)[1].frequency_hz == 49);
    CHECK((*specs)[2].name == "cpu/event=0x3c,umask=0x1/u");
    CHECK(*(*specs)[2].frequency_hz == 7);
    CHECK((*specs)[2].exclude_kernel);
    for (const char* text : {"cycles@", "cycles@0", "cycles@x", "cycles@1000001", "cycles@99999999999"})
        CHECK(mentions(refused(text), "not a rate"));
    CHECK(mentions(refused("cycles,cycles"), "twice"));
    CHECK(mentions(refused("cycles,,cpu-clock"), "missing"));
    CHECK(mentions(refused(""), "missing"));
    CHECK(mentions(refused("{cycles,instructions}"), "braces"));
    CHECK(mentions(refused("cycels"), "unknown event 'cycels'"));
    CHECK(mentions(refused("rxyz"), "unknown event"));
    CHECK(mentions(refused(std::string(600, 'a')), "longer"));
}

TEST_CASE("PMU terms go to the bits that the format files define") {
    const EventPart fields = one("cpu/event=0x3c,umask=0x1,edge,cmask=2/", plain_x86()).parts.at(0);
    CHECK(fields.type == 4);
    CHECK(fields.config == (0x3cU | 0x1U << 8 | 1U << 18 | 2U << 24));
    const EventPart alias = one("cpu/mem-loads/", plain_x86()).parts.at(0);
    CHECK(alias.config == 0x1cd);
    CHECK(alias.config1 == 3);
    const EventPart raw = one("cpu/config=0x10,config1=7,config2=9/", plain_x86()).parts.at(0);
    CHECK((raw.config == 0x10 && raw.config1 == 7 && raw.config2 == 9));
    // 0x1fff = 13 bits over places of 8, 4 and 2 bits: ff -> 0-7, f -> 32-35, 1 -> 59.
    const EventPart split = one("amd_df/event=0x1fff/", plain_x86()).parts.at(0);
    CHECK(split.config == (0xffULL | 0xfULL << 32 | 1ULL << 59));
    CHECK(one("uncore_imc_0/config=1/", plain_x86()).parts.at(0).cpus == std::vector<std::uint32_t>{0, 18});
    CHECK(one("cpu/event=0xc0/", plain_x86()).unit == "events");
    CHECK(one("cpu/instructions/", plain_x86()).unit == "instructions");

    for (const char* pmu : {"uprobe", "kprobe", "breakpoint"})
        CHECK(mentions(refused(std::string(pmu) + "/config1=0x1000/"), "its fields are addresses"));
    CHECK(mentions(refused("cpu/event=0x1ff/"), "too large"));
    CHECK(mentions(refused("cpu/nosuch/"), "mem-loads"));
    CHECK_FALSE(mentions(refused("cpu/nosuch/"), ".scale"));
    CHECK(mentions(refused("cpu/event=abc/"), "needs a number"));
    CHECK(mentions(refused("cpu/event=0x3c"), "should look like"));
    CHECK(mentions(refused("/cycles/"), "should look like"));
    CHECK(mentions(refused("cpu//"), "nothing between"));
    CHECK(refused("gpu/cycles/").code == ErrorCode::not_found);
    CHECK(mentions(refused("gpu/cycles/"), "cpu, software"));
    CHECK(mentions(refused("cpu/../type/"), "not a term"));
    CHECK(refused("../x/").code != ErrorCode::io);
    CHECK(mentions(refused("broken/event=1/"), "not supported"));
    CHECK(mentions(refused("broken/other=1/"), "not supported"));
    CHECK(mentions(refused("broken/loop/"), "no field or event"));
}

TEST_CASE("format bits") {
    CHECK(place_bits("config1:0-63", ~0ULL)->config1 == ~0ULL);
    CHECK(place_bits("config:0-7,21", 0x1ff)->config == (0xffU | 1U << 21));
    CHECK(place_bits("config:0-7,32-35", 0x1fe)->config == (0xfeULL | 1ULL << 32));
    CHECK_FALSE(place_bits("config:0-7,21", 0x2ff));
    for (const char* text : {"", "config", "config:", "config:x", "config:64", "config:0-64", "config:5-4", "conf:1"})
        CHECK_FALSE(place_bits(text, 1));
}

TEST_CASE("hybrid Intel: one name, one part per kind of core") {
    const EventSpec cycles = one("cycles:u", intel_hybrid());
    CHECK(cycles.name == "cycles:u");
    REQUIRE(cycles.parts.size() == 2);
    CHECK(cycles.parts[0].pmu == "cpu_atom");
    CHECK(cycles.parts[0].type == 0);
    CHECK(cycles.parts[0].config == 10ULL << 32);
    CHECK(cycles.parts[0].cpus == std::vector<std::uint32_t>{16, 17, 18, 19, 20, 21, 22, 23});
    CHECK(cycles.parts[1].pmu == "cpu_core");
    CHECK(cycles.parts[1].config == 4ULL << 32);
    CHECK(cycles.parts[1].cpus.size() == 16);

    const EventSpec cache = one("LLC-load-misses", intel_hybrid());
    REQUIRE(cache.parts.size() == 2);
    CHECK(cache.parts[1].type == 3);
    CHECK(cache.parts[1].config == (4ULL << 32 | 0x10002));

    const EventSpec core_only = one("cpu_core/cycles/", intel_hybrid());
    REQUIRE(core_only.parts.size() == 1);
    CHECK(core_only.parts[0].type == 0);
    CHECK(core_only.parts[0].config == 4ULL << 32);
    CHECK(core_only.parts[0].cpus.size() == 16);
    CHECK(core_only.unit == "cycles");
    CHECK(one("cpu_atom/cpu-cycles/", intel_hybrid()).parts.at(0).type == 10);

    const EventSpec raw = one("r3c", intel_hybrid());
    REQUIRE(raw.parts.size() == 2);
    CHECK(raw.parts[0].type == 10);
    CHECK(raw.parts[1].type == 4);
    CHECK(one("cpu-clock", intel_hybrid()).parts.size() == 1);
}

TEST_CASE("a raw code is one word for the core PMU, whatever its value") {
    const auto code = GENERATE(as<std::string>(), "r0", "r4", "r5", "r01c2", "rffffffffffffffff", "rffffffff81000000:u",
                               "r7ffffffff000:k", "r1c2:p", "r5@99");
    const std::uint64_t word = std::stoull(code.substr(1), nullptr, 16);
    INFO(code);
    for (const FakeTree& tree : {plain_x86(), arm_one_kind(), no_pmu(), FakeTree{}}) {
        const EventSpec spec = one(code, tree);
        REQUIRE(spec.parts.size() == 1);
        const perf_event_attr attr = sample_attr(spec, spec.parts[0], {.frequency_hz = 99}, Capabilities{});
        CHECK((attr.type == PERF_TYPE_RAW && attr.config == word));
        // This includes the fields for addresses of breakpoints and probes.
        CHECK((attr.config1 == 0 && attr.config2 == 0 && attr.bp_type == 0));
    }
    for (const FakeTree& tree : {intel_hybrid(), arm_big_little()}) {
        const EventSpec cycles = one("cycles", tree), spec = one(code, tree);
        REQUIRE(spec.parts.size() == 2);
        for (std::size_t i = 0; i < 2; ++i) {
            CHECK(spec.parts[i].type == cycles.parts[i].config >> 32);
            CHECK((spec.parts[i].config == word && spec.parts[i].config1 == 0 && spec.parts[i].config2 == 0));
        }
    }
    CHECK(mentions(refused("r1ffffffffffffffff"), "unknown event"));
    CHECK(mentions(refused("r-1"), "unknown event"));
    CHECK(mentions(refused("r0x5"), "unknown event"));
}

TEST_CASE("ARM: big.LITTLE has two parts, a single kind of core has one, a board without PMU parses") {
    const EventSpec both = one("cycles", arm_big_little());
    REQUIRE(both.parts.size() == 2);
    CHECK(both.parts[0].pmu == "armv8_cortex_a53");
    CHECK(both.parts[0].config == 8ULL << 32);
    CHECK(both.parts[0].cpus == std::vector<std::uint32_t>{0, 1, 2, 3});
    CHECK(both.parts[1].config == 9ULL << 32);
    CHECK(both.parts[1].cpus == std::vector<std::uint32_t>{4, 5});
    const EventPart native = one("armv8_cortex_a72/cpu_cycles/", arm_big_little()).parts.at(0);
    CHECK((native.type == 9 && native.config == 0x11));

    const EventSpec single = one("cycles", arm_one_kind());
    REQUIRE(single.parts.size() == 1);
    CHECK((single.parts[0].type == 0 && single.parts[0].config == 0 && single.parts[0].cpus.empty()));
    CHECK(one("armv8_cortex_a57/cycles/", arm_one_kind()).parts.at(0).config == 0);

    CHECK(one("cycles", no_pmu()).parts.size() == 1);
    CHECK(one("cycles", FakeTree{}).parts.size() == 1);
    CHECK(mentions(refused("cpu/cycles/", no_pmu()), "it has: software"));
}

TEST_CASE("tracepoints") {
    const EventSpec spec = one("sched:sched_switch:u", plain_x86());
    CHECK(spec.parts.at(0).type == 2);
    CHECK(spec.parts.at(0).config == 316);
    CHECK(spec.unit == "events");
    CHECK(spec.exclude_kernel);
    CHECK(refused("sched:nothing").code == ErrorCode::not_found);
    CHECK(mentions(refused("sched:nothing"), "this kernel has no tracepoint sched:nothing"));
    const auto unmounted = parse_events("sched:sched_switch", fake_sysfs({}));
    REQUIRE_FALSE(unmounted);
    CHECK(mentions(unmounted.error(), "mount -t tracefs"));
    CHECK(mentions(refused("sched:"), "not a tracepoint"));
    CHECK(mentions(refused("..:x"), "not a tracepoint"));
}

TEST_CASE("tracepoints with a filter, wherever tracefs is mounted") {
    FakeTree tree{
        {"../proc/self/mounts", "proc /proc proc rw 0 0\nt /mnt/my\\040trace tracefs rw 0 0\n\nnonsense\n"},
        {"../mnt/my trace/events/sched/sched_switch/id", "7\n"},
        {"../mnt/my trace/events/sched/sched_switch/format",
         "name: sched_switch\nformat:\n\tfield:unsigned short common_type;\toffset:0;\n\n"
         "\tfield:__data_loc char[] path;\toffset:40;\n\tfield:char prev_comm[16];\toffset:8;\n\tfield:pid_t "
         "prev_pid;\toffset:24;\n"},
    };
    EventSpec spec = one("sched:sched_switch/prev_pid == 1 && prev_comm ~ \"a/b*\"/u@50", tree);
    CHECK(spec.parts.at(0).config == 7);
    CHECK(spec.filter == "prev_pid == 1 && prev_comm ~ \"a/b*\"");
    CHECK(spec.fields == "path, prev_comm, prev_pid");
    CHECK(spec.exclude_kernel);
    CHECK(spec.frequency_hz == 50);
    CHECK(one("sched:sched_switch", tree).filter.empty());
    CHECK(parse_events("sched:sched_switch/prev_pid > 1/,sched:sched_switch", fake_sysfs(tree))->size() == 2);
    for (const char* bad : {"sched:sched_switch//", "sched:sched_switch/prev_pid"})
        CHECK(mentions(parse_events(bad, fake_sysfs(tree)).error(), "sys:name/FILTER/"));
    tree["../proc/self/mounts"] = "d /mnt/d debugfs rw 0 0\n";
    tree["../mnt/d/tracing/events/a/b/id"] = "9\n";
    CHECK(one("a:b", tree).parts.at(0).config == 9);
}

TEST_CASE("wakers come from a tracepoint beside the switches") {
    auto tree = std::map<std::string, std::string>{
        {"kernel/tracing/events/sched/sched_waking/id", "370\n"},
        {"kernel/tracing/events/sched/sched_waking/format",
         "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\tfield:int common_pid;\toffset:4;\n\n"
         "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\tfield:pid_t pid;\toffset:24;\tsize:4;\n"}};
    const auto both = parse_events("woken-by,cpu-clock,off-cpu", fake_sysfs(tree)).value();
    REQUIRE(both.size() == 2);
    const EventSpec& off_cpu = both.back();
    CHECK(off_cpu.name == "off-cpu");
    CHECK(off_cpu.unit == "ns");
    CHECK(off_cpu.off_cpu == 0b1111);
    REQUIRE(off_cpu.parts.size() == 2);
    CHECK(off_cpu.parts[0].type == PERF_TYPE_SOFTWARE);
    CHECK(off_cpu.parts[0].woken_at == 0);
    CHECK((off_cpu.parts[1].type == PERF_TYPE_TRACEPOINT && off_cpu.parts[1].config == 370 &&
           off_cpu.parts[1].woken_at == 24));
    CHECK(one("woken-by", tree).off_cpu == 0b1000);
    // The tracepoint under its own name is an ordinary event.
    CHECK(one("sched:sched_waking", tree).parts.front().woken_at == 0);
    CHECK(one("off-cpu", tree).parts.size() == 1);
    const auto unmounted = parse_events("woken-by", fake_sysfs({}));
    REQUIRE_FALSE(unmounted);
    CHECK(unmounted.error().message.find("sched:sched_waking needs tracefs") != std::string::npos);
}

TEST_CASE("CPU lists") {
    CHECK(*parse_cpu_list("0-2,5\n") == std::vector<std::uint32_t>{0, 1, 2, 5});
    CHECK(parse_cpu_list("\n")->empty());
    CHECK(*parse_cpu_list("3,1,1-2") == std::vector<std::uint32_t>{1, 2, 3});
    for (const char* text : {"x", "2-1", "0-", "1-99999999", "0,,1"}) CHECK_FALSE(parse_cpu_list(text));
}

TEST_CASE("events that are traced") {
    const auto specs =
        parse_events("cycles,trace:context-switches,trigger:page-faults@7, trace:cpu-clock", fake_sysfs(plain_x86()));
    REQUIRE(specs);
    REQUIRE(specs->size() == 4);
    CHECK_FALSE((*specs)[0].traced);
    CHECK((*specs)[1].name == "context-switches");
    CHECK((*specs)[1].traced);
    CHECK((*specs)[1].period == 1);  // each one
    CHECK((*specs)[2].traced);
    CHECK((*specs)[2].trigger);
    CHECK((*specs)[2].frequency_hz == 7U);
    CHECK((*specs)[3].traced);
    CHECK((*specs)[3].period == 0);  // a clock occurs all the time
    // Once sampled and once traced is traced.
    for (const char* text : {"page-faults,trace:page-faults", "trace:page-faults,page-faults"})
        CHECK(one(text, plain_x86()).traced);
    CHECK(mentions(refused("trace:cycles,trace:cycles"), "listed twice"));
    CHECK(mentions(refused("trace:off-cpu"), "sched:sched_switch"));
    CHECK(mentions(refused("trace:"), "missing"));
    CHECK(mentions(refused("trace:trace:cycles"), "trace:cycles"));
}

TEST_CASE("marks in lists of events") {
    CHECK(traced_events("a:b/x == 1, y/,uprobe:\"f,g\"@libc, trigger:c:d") ==
          "trace:a:b/x == 1, y/,trace:uprobe:\"f,g\"@libc,trigger:c:d");
    CHECK(split_list("trace:uprobe:/a,b/c:0x10,trace:x").size() == 2);
    CHECK(split_list("trace:").size() == 1);
    CHECK(traces_events("cycles,trigger:x"));
    CHECK_FALSE(traces_events("cycles,tracer:x"));
}
