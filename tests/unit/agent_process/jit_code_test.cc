// JIT code of one process over time: addresses that samples request before, while and after a file names them.
#include "agent/process/jit_code.h"

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "agent/process/jit_names.h"
#include "base/clock.h"
#include "fake_proc.h"
#include "jit_files.h"

using namespace flamewire;
using namespace flamewire::agent;
using namespace flamewire::agent::test;

namespace {

constexpr std::uint64_t second = 1'000'000'000;

struct Target {
    explicit Target(std::string jitdump = {}, std::uint64_t start_time_ns = 0)
        : code(proc.root(), {7, 42, 3, "node", std::move(jitdump), start_time_ns, {}}) {
        proc.write("proc/42/status", "Uid:\t0\t" + std::to_string(::geteuid()) + "\t0\t0\n");
        proc.link("proc/42/root", proc.path("root"));
        proc.write("root/tmp/other", "");
    }
    void write(std::string_view text) const { proc.write("root/tmp/perf-3.map", text); }
    void append(std::string_view text, std::string_view file = "root/tmp/perf-3.map") const {
        std::ofstream(proc.path(file), std::ios::app) << text;
    }
    // The read happens exactly when the file was last written.
    void poll(std::uint64_t now_ns) {
        struct stat status{};
        ::stat(proc.path("root/tmp/perf-3.map").c_str(), &status);
        const std::int64_t written = std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
        JitBudget budget{1 << 20, answer_bytes, UINT64_MAX, 1000, false};
        answers.clear();
        code.poll({previous_ns, now_ns, written}, budget, answers, notices);
        previous_ns = now_ns;
    }
    FakeProc proc;
    JitCode code;
    std::size_t answer_bytes = 1 << 20;
    std::uint64_t previous_ns = 0;
    std::vector<JitAnswer> answers;
    std::vector<wire::Notice> notices;
};

}  // namespace

TEST_CASE("only sampled addresses are answered") {
    Target target;
    target.write("1000 10 one\n2000 10 two\n");
    target.poll(1 * second);
    CHECK(target.answers.empty());
    target.code.want(0x2008, 1 * second);
    target.code.want(0x200a, 1 * second);
    target.code.want(0x3000, 1 * second);
    target.poll(2 * second);
    REQUIRE(target.answers.size() == 1);
    CHECK(target.answers[0].module == 7);
    CHECK(target.answers[0].start == 0x2000);
    CHECK(target.answers[0].end == 0x2010);
    CHECK(target.answers[0].from_ns == 0);
    CHECK(target.answers[0].body->name == "two");
    // It gets a name as soon as the file has one.
    target.append("3000 10 three\n");
    target.poll(3 * second);
    REQUIRE(target.answers.size() == 1);
    CHECK(target.answers[0].body->name == "three");
    CHECK(target.code.up_to_date());
}

TEST_CASE("a reused address has another name from then on") {
    Target target;
    target.write("1000 10 old\n2000 10 other\n");
    target.poll(1 * second);
    target.code.want(0x1004, 1 * second);
    target.poll(2 * second);
    REQUIRE(target.answers.size() == 1);
    target.append("ff8 20 new\n2000 10 never sampled\n");
    target.poll(3 * second);
    REQUIRE(target.answers.size() == 1);
    CHECK(target.answers[0].body->name == "new");
    CHECK(target.answers[0].from_ns == 3 * second);
    CHECK(target.answers[0].start == 0xff8);
}

TEST_CASE("an address sampled before its reuse has the old name") {
    Target target;
    target.write("1000 10 old\n");
    target.poll(1 * second);
    target.append("1000 10 new\n");
    target.code.want(0x1004, 2 * second);  // requested late, but sampled in time
    target.poll(3 * second);
    REQUIRE(target.answers.size() == 2);
    CHECK(target.answers[0].body->name == "old");
    CHECK(target.answers[0].until_ns == 3 * second);
    CHECK(target.answers[1].body->name == "new");
    CHECK(target.answers[1].from_ns == 3 * second);
}

TEST_CASE("a sample that is requested after its code was replaced has the old name") {
    Target target;
    target.write("");
    target.poll(1 * second);
    target.append("1000 10 old\n");
    target.poll(2 * second);
    target.append("1000 10 new\n");
    target.poll(3 * second);
    target.code.want(0x1000, 3 * second + 1);  // a sample of "new"
    target.code.want(0x1004, 2 * second + 1);  // a sample of "old", which "new" has replaced
    target.poll(3 * second + 2);
    // "old" comes first: the sampler names only addresses that have no name yet.
    REQUIRE(target.answers.size() == 2);
    CHECK(target.answers[0].body->name == "old");
    CHECK(target.answers[0].until_ns == 3 * second);
    CHECK(target.answers[1].body->name == "new");
    CHECK(target.answers[1].from_ns == 3 * second);
    // Code that was replaced long ago is not kept.
    target.poll(20 * second);
    target.append("2000 10 other\n");
    target.code.want(0x1008, 2 * second + 1);
    target.poll(21 * second);
    CHECK(std::ranges::none_of(target.answers, [](const JitAnswer& answer) { return answer.body->name == "old"; }));
}

TEST_CASE("replaced code is dropped when its file is rewritten") {
    Target target;
    target.write("");
    target.poll(1 * second);
    target.append("1000 10 one\n");
    target.poll(2 * second);
    target.append("1000 10 two\n");
    target.poll(3 * second);
    target.append("1000 10 three\n");
    target.poll(4 * second);
    target.write("1000 10 new\n3000 10 far\n");  // "far" is at the file offset where "two" was
    target.poll(5 * second);
    target.poll(5 * second + 1);
    target.append("1000 10 last\n");
    target.poll(6 * second);
    target.code.want(0x1004, 3 * second + 1);
    target.poll(6 * second + 1);
    REQUIRE(target.answers.size() == 2);
    CHECK(target.answers[0].body->name == "new");
    CHECK(target.answers[1].body->name == "last");
}

TEST_CASE("a late name does not apply to much earlier samples") {
    Target target;
    target.write("1000 10 one\n");
    target.code.want(0x5004, 1 * second);
    target.poll(2 * second);
    CHECK(target.answers.empty());
    target.append("5000 10 late\n");
    target.poll(60 * second);
    REQUIRE(target.answers.size() == 1);
    CHECK(target.answers[0].from_ns == 60 * second);
    CHECK_FALSE(may_name(1 * second, target.answers[0].from_ns));
    // But a map that is written in one piece, on request, names all earlier code.
    Target late;
    late.code.want(0x5004, 1 * second);
    late.poll(2 * second);
    late.write("5000 10 f\n");
    late.poll(60 * second);
    REQUIRE(late.answers.size() == 1);
    CHECK(late.answers[0].from_ns == 0);
}

TEST_CASE("a rewritten map changes only the names that differ") {
    Target target;
    target.write("1000 10 same\n2000 10 before\n3000 10 gone\n");
    for (const std::uint64_t address : {0x1000U, 0x2000U, 0x3000U}) target.code.want(address, second);
    target.poll(1 * second);
    CHECK(target.answers.size() == 3);
    target.write("2000 10 after\n1000 10 same\n");
    target.poll(2 * second);
    target.poll(3 * second);
    REQUIRE(target.answers.size() == 1);
    CHECK(target.answers[0].body->name == "after");
    CHECK(target.answers[0].from_ns == 2 * second);
}

TEST_CASE("moved code keeps its name and its lines") {
    Target target("/tmp/jit-3.dump");
    target.proc.write("root/tmp/jit-3.dump",
                      jitdump_header() + jitdump_lines(1, 0x1000, {{0x1000, 5, "/a.js"}, {0x1008, 6, "/a.js"}}) +
                          jitdump_load(1, 0x1000, 0x20, "f") + jitdump_move(2, 0x1000, 0x5000, 0x20) +
                          jitdump_load(3, 0x1000, 0x20, "g"));
    target.code.want(0x500c, second);
    target.code.want(0x1000, second);
    target.poll(2 * second);
    REQUIRE(target.answers.size() == 2);
    CHECK(target.answers[0].body->name == "g");
    CHECK(target.answers[1].body->name == "f");
    CHECK(target.answers[1].body->start == 0x5000);
    CHECK(target.answers[1].body->rows.size() == 2);
}

// 1,000 lines in 1,000 files: about 150 KB per answer.
std::string long_function(std::uint64_t code, std::uint64_t size) {
    std::vector<std::string> files;
    for (int i = 0; i < 1000; ++i) files.push_back("/" + std::to_string(i) + std::string(100, 'f'));
    std::vector<DebugRow> rows;
    for (const std::string& file : files) rows.push_back({code, 1, file});
    return jitdump_lines(1, code, rows) + jitdump_load(1, code, size, "long" + std::string(1000, 'g'));
}

std::size_t bytes_of_all(const std::vector<JitAnswer>& answers) {
    std::size_t bytes = 0;
    for (const JitAnswer& answer : answers) bytes += bytes_of(*answer.body);
    return bytes;
}

TEST_CASE("answers that exceed the limit of one read come with the next one") {
    constexpr std::uint64_t base = 0x10000, size = 0x20, functions = 5;
    std::string dump = jitdump_header();
    for (std::uint64_t i = 0; i < functions; ++i) dump += long_function(base + i * size, size);
    Target target("/tmp/jit-3.dump");
    target.answer_bytes = 200'000;
    target.proc.write("root/tmp/jit-3.dump", dump);
    for (std::uint64_t i = 0; i < functions; ++i) target.code.want(base + i * size, second);
    std::size_t answered = 0;
    for (std::uint64_t look = 2; answered < functions && look < 20; ++look) {
        CHECK_FALSE(target.code.up_to_date());
        target.poll(look * second);
        for (const JitAnswer& answer : target.answers) CHECK(answer.body->rows.size() == 1000);
        CHECK(target.answers.size() <= 2);
        answered += target.answers.size();
    }
    CHECK(answered == functions);
    target.poll(20 * second);
    CHECK(target.code.up_to_date());
    CHECK(target.notices.empty());
}

TEST_CASE("code that is replaced many times gets names without lines, and a notice") {
    constexpr std::uint64_t one = 0x10000, other = 0x20000, known = 0x30000, size = 0x20, moves = 1000;
    Target target("/tmp/jit-3.dump");
    target.answer_bytes = 500'000;
    target.proc.write("root/tmp/jit-3.dump", jitdump_header() + long_function(one, size) + long_function(other, size) +
                                                 jitdump_move(2, one, known, size));
    target.code.want(known, second);
    target.poll(2 * second);
    REQUIRE(target.answers.size() == 1);
    CHECK(target.answers[0].body->rows.size() == 1000);
    std::string more;
    for (std::uint64_t i = 0; i < moves; ++i) more += jitdump_move(3 + i, i % 2 == 0 ? other : one, known, size);
    target.append(more, "root/tmp/jit-3.dump");
    target.poll(3 * second);
    CHECK(target.answers.size() == moves);
    constexpr std::size_t largest = 200'000, shortest = 500;
    CHECK(bytes_of_all(target.answers) < target.answer_bytes + largest + moves * shortest);
    const JitBody& last = *target.answers.back().body;
    CHECK(last.rows.empty());
    CHECK(last.name.starts_with("long"));
    target.poll(4 * second);
    CHECK(target.code.up_to_date());
    REQUIRE(target.notices.size() == 1);
    CHECK(target.notices[0].text.find("has short names without lines") != std::string::npos);
}

TEST_CASE("a jitdump that is mapped later replaces a map") {
    Target target;
    target.write("1000 10 coarse\n");
    target.code.want(0x1000, second);
    target.poll(1 * second);
    CHECK(target.answers.size() == 1);
    target.proc.write("root/x/jit-3.dump", jitdump_header() + jitdump_load(2 * second, 0x1000, 0x20, "fine"));
    target.code.found_jitdump("/x/jit-3.dump");
    target.poll(3 * second);
    REQUIRE(target.answers.size() == 1);
    CHECK(target.answers[0].body->name == "fine");
}

TEST_CASE("the remedy for missing names fits the runtime, which the program file identifies") {
    const auto remedy = [](const char* comm, const char* exe) {
        return jit_remedy({.pid = 42, .ns_pid = 3, .program = comm, .jitdump = {}, .exe = exe});
    };
    CHECK(remedy("MainThread", "/usr/bin/node") == "start it with node --perf-basic-prof");
    CHECK(remedy("node", "") == "start it with node --perf-basic-prof");
    CHECK(remedy("gunicorn: worke", "/usr/bin/python3.12") == "start it with python3 -X perf (Python 3.12 or later)");
    CHECK(remedy("C2 CompilerThre", "/usr/lib/jvm/java-17-openjdk-amd64/bin/java") ==
          "run jcmd 42 Compiler.perfmap (JDK 17 or later), or start it with -XX:+UnlockDiagnosticVMOptions "
          "-XX:+DumpPerfMapAtExit; for whole stacks start it with -XX:+PreserveFramePointer");
    CHECK(remedy("ThreadPoolForeg", "/usr/lib/chromium/chromium").contains("--js-flags=--perf-basic-prof"));
    CHECK(remedy("php", "/usr/bin/php8.2") == "start it with php -d opcache.jit_debug=16");
    CHECK(remedy("luajit", "/usr/bin/luajit-2.1.0-beta3").contains("LUAJIT_USE_PERFTOOLS"));
    CHECK(remedy("app", "/usr/bin/qemu-aarch64-static").contains("-perfmap"));
    // PCRE compiles regular expressions and has no option for perf maps.
    CHECK(remedy("grep", "/usr/bin/grep") == "enable perf maps in its runtime, if it supports them (/tmp/perf-3.map)");
}

TEST_CASE("a map of another user, a link and a special file are not trusted") {
    const auto notice_text = [](Target& target) {
        target.code.want(0x1000, second);
        for (std::uint64_t now = 1; now < 5; ++now) target.poll(now * second);
        CHECK(target.notices.empty());
        target.code.often_unnamed();
        target.poll(6 * second);
        CHECK(target.answers.empty());
        REQUIRE(target.notices.size() == 1);
        CHECK(target.notices[0].code == "jit-names-missing");
        return target.notices[0].text + " | " + target.notices[0].remedy;
    };
    Target none;
    CHECK(notice_text(none) ==
          "node (process 42) runs code that it compiled itself, and there is no /tmp/perf-3.map: that code has no "
          "names | start it with node --perf-basic-prof");
    Target link;
    link.write("");
    link.proc.write("root/tmp/real", "1000 10 f\n");
    link.proc.remove("root/tmp/perf-3.map");
    link.proc.link("root/tmp/perf-3.map", "/tmp/real");
    CHECK(notice_text(link).find("cannot be opened") != std::string::npos);
    Target pipe;
    REQUIRE(::mkfifo(pipe.proc.path("root/tmp/perf-3.map").c_str(), 0600) == 0);
    CHECK(notice_text(pipe).find("not a regular file") != std::string::npos);
    if (::geteuid() != 0) return;
    Target foreign;
    foreign.write("1000 10 f\n");
    REQUIRE(::chown(foreign.proc.path("root/tmp/perf-3.map").c_str(), 4711, 4711) == 0);
    CHECK(notice_text(foreign).find("belongs to another user") != std::string::npos);
    foreign.proc.write("proc/42/status", "Uid:\t0\t4711\t0\t0\n");
    foreign.poll(20 * second);
    CHECK(foreign.answers.size() == 1);
    // A map of root is trusted if the program may read it, too.
    for (const bool readable : {false, true}) {
        Target of_root;
        of_root.proc.write("proc/42/status", "Uid:\t4711\t4711\t4711\t4711\n");
        of_root.write("1000 10 f\n");
        REQUIRE(::chmod(of_root.proc.path("root/tmp/perf-3.map").c_str(), readable ? 0644 : 0640) == 0);
        of_root.code.want(0x1000, second);
        of_root.poll(2 * second);
        CHECK(of_root.answers.size() == (readable ? 1 : 0));
        of_root.proc.write("proc/42/status", "Uid:\t0\t0\t0\t0\n");
        of_root.poll(20 * second);
        CHECK(of_root.answers.size() == (readable ? 0 : 1));
    }
}

TEST_CASE("a map left over from an earlier process with the same pid is not trusted") {
    Target target({}, boottime_ns() + 60 * second);
    target.write("1000 10 f\n");
    target.code.want(0x1000, second);
    target.poll(1 * second);
    CHECK(target.answers.empty());
    Target own({}, boottime_ns() - second);
    own.write("1000 10 f\n");
    own.code.want(0x1000, second);
    own.poll(1 * second);
    CHECK(own.answers.size() == 1);
}

TEST_CASE("links of the target are resolved in the target's root") {
    Target target;
    target.proc.remove("root/tmp");
    target.proc.write("root/var/tmp/perf-3.map", "1000 10 inside\n");
    target.proc.link("root/tmp", "/var/tmp");
    target.code.want(0x1000, second);
    target.poll(1 * second);
    REQUIRE(target.answers.size() == 1);
    CHECK(target.answers[0].body->name == "inside");
}

TEST_CASE("a notice reports more code than the limit") {
    Target target;
    std::string text;
    for (int i = 0; i < 2000; ++i) text += std::to_string(1000 + i) + "00 10 f" + std::to_string(i) + "\n";
    target.write(text);
    target.poll(1 * second);
    CHECK(target.code.ranges() == 1000);
    REQUIRE(target.notices.size() == 1);
    CHECK(target.notices[0].code == "jit-names-full");
}

TEST_CASE("the sampler's names change at the time of the change, and bare addresses get the name of their time") {
    FakeProc proc;
    proc.write("proc/42/status", "Uid:\t0\t" + std::to_string(::geteuid()) + "\t0\t0\n");
    proc.link("proc/42/root", proc.path("root"));
    proc.write("root/tmp/jit-42.dump",
               jitdump_header() + jitdump_load(100, 0x1000, 0x20, "first") + jitdump_load(200, 0x1000, 0x20, "second"));
    JitNames names(proc.root());
    names.add({7, 42, 0, "node", "/tmp/jit-42.dump", 0, {}}, 3);
    CHECK_FALSE(names.find(7, 0x1004, 150));
    CHECK_FALSE(names.find(8, 0x1004, 150));
    names.settle(10 * second);
    const auto symbols = names.take_symbols();
    REQUIRE(symbols.size() == 1);
    CHECK(symbols[0].module == 7);
    CHECK(symbols[0].address == 0x1004);
    CHECK(symbols[0].size == 1);
    CHECK(symbols[0].name == "first");
    CHECK(names.find(7, 0x1004, 250)->name == "second");
    CHECK(names.take_symbols().empty());
    names.forget(7);
    CHECK_FALSE(names.find(7, 0x1004, 250));
}

TEST_CASE("a waiting caller gets the results of the read, also if earlier results were not taken") {
    FakeProc proc;
    proc.write("proc/42/status", "Uid:\t0\t" + std::to_string(::geteuid()) + "\t0\t0\n");
    proc.link("proc/42/root", proc.path("root"));
    proc.write("root/tmp/perf-42.map", "1000 20 first\n");
    JitReader reader(proc.root());
    JitQuestions questions;
    questions.processes.push_back({7, 42, 0, "node", "", 0, {}});
    for (const std::uint64_t address : {0x1004, 0x2004, 0x3004})
        questions.wants.push_back({7, address, monotonic_ns()});
    reader.ask(questions);
    reader.poll_now(10 * second);
    for (const char* line : {"2000 20 second\n", "3000 20 third\n"}) {
        std::ofstream(proc.path("root/tmp/perf-42.map"), std::ios::app) << line;
        reader.poll_now(10 * second);
    }
    const std::uint64_t now = monotonic_ns();
    reader.poll_now(10 * second);
    const JitAnswers taken = reader.take();
    CHECK(taken.answers.size() == 3);
    CHECK(taken.known_until_ns >= now);
    CHECK(reader.take().known_until_ns == 0);
}
