// The text output of perf script. Texts and expected lines are written by hand.
#include <catch2/catch.hpp>

#include <optional>
#include <utility>

#include "imported.h"
#include "profile/formats/perf_script_import.h"

namespace flamewire::profile {
namespace {

std::string sample_of(std::string_view line) {
    PerfSampleLine one;
    if (!parse_perf_sample(line, one)) return "-";
    return std::string(one.comm) + "|" + std::to_string(one.pid) + "|" + std::to_string(one.tid) + "|" +
           std::to_string(one.cpu) + "|" + (one.has_time ? std::to_string(one.time_ns) : "") + "|" +
           (one.has_period ? std::to_string(one.period) : "") + "|" + std::string(one.event) + "|" +
           std::string(one.rest);
}

std::string frame_of(std::string_view line) {
    PerfFrameLine one;
    if (!parse_perf_frame(line, one)) return "-";
    return std::to_string(one.address) + "|" + std::string(one.symbol) + "|" + std::string(one.module) +
           (one.inlined ? "|i" : "");
}

}  // namespace

TEST_CASE("perf script: the first line of a sample, in all field orders") {
    CHECK(sample_of("java 19983 cycles:") == "java|19983|19983|0|||cycles|");
    CHECK(sample_of("app 12/13 cycles: ") == "app|12|13|0|||cycles|");
    CHECK(sample_of("dd 29776 666709.771979:   10101010 cpu-clock: \r") ==
          "dd|29776|29776|0|666709771979000|10101010|cpu-clock|");
    CHECK(sample_of("swapper     0 [001]  1333.768770: cpu-clock: ") == "swapper|0|0|1|1333768770000||cpu-clock|");
    CHECK(sample_of("emulator  4152 75695.008865:          1 cycles:u: ") ==
          "emulator|4152|4152|0|75695008865000|1|cycles:u|");
    CHECK(sample_of("           perf  5805/5806  12631.245939123:  7 cycles:ppp:  ffffffffb42071f2 f ([k])") ==
          "perf|5805|5806|0|12631245939123|7|cycles:ppp|ffffffffb42071f2 f ([k])");
    CHECK(sample_of("Web Content 3 w 12/14 [003] 1.5: sched:sched_switch: prev_comm=a prev_pid=1") ==
          "Web Content 3 w|12|14|3|1500000000||sched:sched_switch|prev_comm=a prev_pid=1");
    CHECK(sample_of("kworker/0:1 99 [000] d.h1 5.000001: irq:softirq_entry: vec=1") ==
          "kworker/0:1|99|99|0|5000001000||irq:softirq_entry|vec=1");
    CHECK(sample_of(":-1 -1 [000] 5.0: 1 cycles:") == ":-1|0|0|0|5000000000|1|cycles|");
    for (const std::string_view none : {"", "a;b;c 12", "hello world", "12 13", "\t7f00 f (x)", "a 1 2 3", "# comment",
                                        "a 99999999999 cycles:", "a 1 99999999999999999999.5: cycles:"})
        CHECK(sample_of(none) == "-");
}

namespace {

// The fields that were found, as letters.
std::string layout_of(const std::string& text) {
    const std::optional<PerfLayout> layout = find_perf_layout(text);
    if (!layout) return "-";
    std::string fields;
    for (const auto& [has, name] :
         {std::pair(layout->comm, 'c'), std::pair(layout->ids, 'i'), std::pair(layout->cpu, 'p'),
          std::pair(layout->misc, 'm'), std::pair(layout->time, 't'), std::pair(layout->period, 'n'),
          std::pair(layout->event, 'e')})
        if (has) fields += name;
    constexpr std::string_view tails[] = {"", "+frame", "+any"};
    return fields + std::string(tails[static_cast<std::size_t>(layout->tail)]) + (layout->line_after ? "+line" : "");
}

}  // namespace

TEST_CASE("perf script: the fields of -F are detected from many lines") {
    const std::string frames = "\t    55fa35640173 leaf+0x3 (/app)\n\t    55fa356401e4 main (/app)\n\n";
    const auto chains = [&](const std::string& one, const std::string& other) {
        return one + "\n" + frames + other + "\n" + frames;
    };
    CHECK(layout_of(chains("", "")) == "");
    CHECK(layout_of(chains("app ", "a b 12 ")) == "c");
    CHECK(layout_of(chains(" 9271 ", " 9273 ")) == "i");
    CHECK(layout_of(chains("app  9271 ", "a b 12  9273 ")) == "ci");
    CHECK(layout_of(chains("   2004008 ", "   2004012 ")) == "n");
    CHECK(layout_of(chains(" 9271    2004008 ", " 9273    2004012 ")) == "in");
    CHECK(layout_of(chains("cpu-clock:u: ", "cpu-clock:u: ")) == "e");
    CHECK(layout_of(chains("[000] UE 46836.210450: ", "[001] K  46836.2: ")) == "pmt");
    // The default fields, also with an empty name.
    CHECK(layout_of(chains("app 12/13 [002] 100.5: 2000 cycles: ", "app 12/13 [002] 100.6: 2000 cycles: ")) == "-");
    CHECK(layout_of(chains(" 12/13 [002] 100.5:       2000 cycles: ", "app 12/13 [002] 100.6:       2000 cycles: ")) ==
          "ciptne");
    // Without call chains, the frame is on the same line, after a data address if there is one.
    CHECK(layout_of("  9271 46831.860537:     55fa35640173 leaf\n  9273 46831.860537:         55fa3564 leaf\n") ==
          "it+frame");
    CHECK(layout_of("46831.860537:                0     55fa35640173 leaf\n") == "t+frame");
    CHECK(
        layout_of(
            "app  9271 46831.8: sched:sched_switch: prev_comm=a\n  9271 46831.8: sched:sched_switch: prev_comm=a\n") ==
        "cite+any");
    for (const std::string_view line : {"  app.c:5", "  :0", "  libc.so.6[891f5]", "  libc.so.6+0x891f5 (inlined)"})
        CHECK(is_perf_source_line(line));
    for (const std::string_view line : {"  :", "  0", "   :0", " :0", ":0"}) CHECK_FALSE(is_perf_source_line(line));
    CHECK(layout_of("     55fa35640173 leaf (/app)\n  app.c:5\n     55fa35640173 leaf (/app)\n  libc.so.6[891f5]\n") ==
          "+frame");
    CHECK(
        layout_of("app\n\t    55fa35640173 leaf\n ABI:2    AX:0x1\napp\n\t    55fa35640173 leaf\n ABI:2    AX:0x1\n") ==
        "c+line");
}

TEST_CASE("perf script: other texts have no field layout") {
    for (const std::string_view other :
         {"      3 apple\n     12 pear\n", "0000000000001139 T main\n0000000000001140 T f\n", "1 2 3\n4 5 6\n",
          "[    0.123456] Booting Linux\n[    1.5] usb: new device\n", "error: no such file\nwarning: unused\n",
          "main;f;g 12\nmain;f 3\n", "time,event,weight\n1.5,cycles,2\n",
          "\tThis paragraph is indented.\n\n\tThis too.\n", "12.5: started\n13.5: stopped\n", "", "\n\n"})
        CHECK(layout_of(std::string(other)) == "-");
    // Hostile lines end the search early.
    CHECK(layout_of(std::string(1 << 20, ' ') + "1.5: cycles:") == "-");
    std::string many;
    for (int i = 0; i < 60; ++i) many += std::string(4'000, ' ') + "1.5: cycles: x\n";
    CHECK(layout_of(many) == "te+any");
    std::string letters;
    for (int i = 0; i < 60; ++i) letters += std::string(2'000, 'a') + std::string(2'000, ' ') + "1.5: cycles: x\n";
    CHECK(layout_of(letters) == "-");
}

TEST_CASE("perf script: frames") {
    CHECK(frame_of("\t          4005b1 main (/root/lang/func_ab)") == "4195761|main|/root/lang/func_ab");
    CHECK(frame_of("ff [unknown] ([unknown])") == "255||[unknown]");
    CHECK(frame_of("\tff operator()(int, char)+0x1f (/a b/(x).so)") == "255|operator()(int, char)|/a b/(x).so");
    CHECK(frame_of("\tff f+0xffff018fd5dce000 (/x.so (deleted))") == "255|f|/x.so");
    CHECK(frame_of("\tff f(int) (inlined)") == "255|f(int)||i");
    CHECK(frame_of("\tff ([kernel.kallsyms])") == "255||[kernel.kallsyms]");
    CHECK(frame_of("\tff name") == "255|name|");
    CHECK(frame_of("\tff") == "255||");
    CHECK(frame_of("\tfoo.c:12") == "-");
    CHECK(frame_of("") == "-");
    CHECK(frame_of("\t00000000000000000000001 f (x)") == "-");
}

TEST_CASE("perf script: samples with times, processors, periods and several events") {
    const std::string text =
        "# hostname : board\n# arch : armv7l\n# os release : 6.1.0\n#\n"
        "app 12/13 [002]   100.500000:    2000 cycles: \n"
        "\tffffffff81000010 vfs_read+0x10 ([kernel.kallsyms])\n"
        "\tffffffffc0000010 ext4_read ([ext4])\n"
        "\tffffffffc0000020 [unknown] ([xfs])\n"
        "\t     7f0010 tiny (inlined)\n"
        "\t     7f0010 outer (/lib/a.so)\n"
        "\t     7f0020 [unknown] (/lib/a.so)\n"
        "\t     7f0030 run (/tmp/perf-12.map)\n"
        "\n"
        "app 12/14 [000]   100.520000:    1000 cpu-clock: \n"
        "\t     400010 main (/bin/app)\n"
        "\n"
        "app 12/13 [002]   100.490000:    500 cycles: \n"
        "\t     400010 main (/bin/app)\n"
        "app 12/13 [002] 101.0: PERF_RECORD_LOST lost 7\n";
    const ImportedText imported(text);
    CHECK(imported.recognised == "perf-script");
    CHECK(imported.problem.empty());
    CHECK(imported.events() == "cycles/cycles cpu-clock/ns ");
    CHECK(imported.lines("cycles", true) ==
          "app;main 500\n"
          "app;run;[a.so+0x7f0020];outer;tiny;[xfs.ko+0xffffffffc0000020];ext4_read;vfs_read 2000\n");
    CHECK(imported.lines("cpu-clock", true) == "app;main 1000\n");
    CHECK(imported.function("vfs_read")->kind == FrameKind::kernel);
    CHECK(imported.module_of("ext4_read") == "ext4.ko");
    CHECK(imported.function("tiny")->kind == FrameKind::inlined);
    CHECK(imported.module_of("tiny") == "a.so");
    CHECK(imported.function("run")->kind == FrameKind::jit);
    CHECK(imported.store.first_ns() == 100'500'000'000);
    CHECK(imported.store.end_ns() == 100'530'000'000);
    CHECK(imported.store.recording()->host == "board");
    CHECK(imported.store.recording()->arch == "armv7l");
    REQUIRE(imported.store.threads().size() == 3);
    CHECK(imported.store.threads()[2].tid == 14);
    CHECK(imported.noted("import-order"));
    CHECK_FALSE(imported.noted("import-lines"));
    REQUIRE(imported.store.losses().size() == 1);
    CHECK(imported.store.losses()[0].count == 7);
}

TEST_CASE("perf script: flat samples, frames without indentation, no times, a truncated file") {
    const ImportedText flat(
        "            perf  5/6  12.245939:          5 cycles:ppp:  ffffffffb42071f2 native ([kernel.kallsyms])\n"
        "            echo  5/6  12.345939:          6 cycles:ppp:          4010f0 main (/bin/echo)\n");
    CHECK(flat.recognised == "perf-script");
    CHECK(flat.lines({}, true) == "echo;main 6\necho;native 5\n");
    const ImportedText margin(
        "java 19983 cycles:\nffffffff8103d0ca write_msr ([kernel.kallsyms])\n    4010f0 m (/b)\n\ndd 7 cycles:\n4010f0 "
        "m (/b)\n");
    CHECK(margin.recognised == "perf-script");
    CHECK(margin.lines() == "dd;m 1\njava;m;write_msr 1\n");
    CHECK(margin.noted("import-no-times"));
    const ImportedText cut("app 1 2.5: 10 cycles: \n\t 10 a (/b)\n\t 20 b (/b)\n\napp 1 2.6: 10 cycles: \n\t 10 a (/b");
    CHECK(cut.lines() == "app;a (/b 1\napp;b;a 1\n");
    const ImportedText none("# nothing\n", "perf-script");
    CHECK(none.problem == "the text of perf script has no sample in it");
}

TEST_CASE("perf script: the text of perf stat after it becomes counters, and samples may follow") {
    const ImportedText imported(
        "w   4/4    10.000000:    50 instructions: \n\t 10 a (/b)\n\n"
        "\n### PERF_STAT ###\n\n Performance counter stats for process id '4':\n\n"
        "     2,000,000      cycles        #    3.151 GHz      (50.00%)\n"
        "   <not supported>      LLC-loads\n"
        "          7,829.39 msec task-clock     #    0.979 CPUs utilized\n\n"
        "       8.000000000 seconds time elapsed\n\n"
        "w   4/4    20.000000:    70 instructions: \n\t 10 a (/b)\n");
    CHECK(imported.lines({}, true) == "w;a 120\n");
    CHECK_FALSE(imported.noted("import-lines"));
    const auto counters = imported.store.counters().series();
    REQUIRE(counters.size() == 3);
    REQUIRE(counters[0].points.size() == 1);
    CHECK(counters[0].points[0].start_ns == 10'000'000'000);
    CHECK(counters[0].points[0].end_ns == 18'000'000'000);
    // The value was doubled by perf stat because the event was scheduled half of the time.
    CHECK(counters[0].points[0].value == 1'000'000);
}

TEST_CASE("texts that are not from perf script") {
    for (const std::string_view none :
         {"a;b 1\n", "hello 12 world:\n", "key: value\n", "foo 12 bar:\nmore text\n", "", "{}"})
        CHECK_FALSE(recognises_perf_script(none));
}

}  // namespace flamewire::profile
