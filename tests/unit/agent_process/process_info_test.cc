#include "agent/process/process_info.h"

#include <catch2/catch.hpp>

#include "agent/process/proc_text.h"
#include "fake_proc.h"

using namespace flamewire::agent;
using flamewire::agent::test::FakeProc;

TEST_CASE("stat, with a comm that looks like other fields") {
    const auto stat =
        parse_stat("4242 (a) R 1 (b) S 17 4242 4242 0 -1 4194560 100 0 0 0 33 44 1 2 20 0 3 0 987654 1000 10 1844\n");
    REQUIRE(stat);
    CHECK(stat->comm == "a) R 1 (b");
    CHECK(stat->state == 'S');
    CHECK(stat->parent_pid == 17);
    CHECK(stat->user_ticks == 33);
    CHECK(stat->system_ticks == 44);
    CHECK(stat->start_ticks == 987654);
    CHECK_FALSE(stat->kernel_thread());
    CHECK(parse_stat("2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 3 0 0")->kernel_thread());
}

TEST_CASE("a truncated stat") {
    for (const char* text : {"", "1", "1 (x", "1 x)", "1 (x)", "1 (x) S", "1 (x) S 1 2 3 4 5 6", ")("})
        CHECK_FALSE(parse_stat(text));
}

TEST_CASE("status: effective user and pid in the innermost namespace") {
    const ProcStatus inner = parse_status("Name:\tx\nUid:\t0\t33\t0\t0\nGid:\t0\nNStgid:\t4242\t17\t1\nNSpid:\t9\n");
    CHECK(inner.effective_uid == 33);
    CHECK(inner.namespace_pid == 1);
    CHECK(parse_status("Uid:\t1\t2\t3\t4\nNStgid:\t4242\n").namespace_pid == 0);
    CHECK(parse_status("NStgid:").namespace_pid == 0);
}

TEST_CASE("the most specific cgroup path") {
    const std::string id(64, 'a');
    CHECK(parse_cgroup("0::/user.slice/session-2.scope\n").path == "/user.slice/session-2.scope");
    const Cgroup old =
        parse_cgroup("12:pids:/\n4:memory:/docker/" + id + "\n1:name=systemd:/docker/" + id + "\n0::/\n");
    CHECK(old.path == "/docker/" + id);
    CHECK(old.container_id == id);
    CHECK(parse_cgroup("5:cpu:/a\n0::/b\n").path == "/b");
    // With both versions mounted, the one that the runtime uses counts.
    const Cgroup hybrid = parse_cgroup("4:memory:/docker/" + id + "\n0::/system.slice/containerd.service\n");
    CHECK(hybrid.path == "/docker/" + id);
    CHECK(hybrid.container_id == id);
    CHECK(parse_cgroup("4:memory:/lxc/web\n0::/lxc.payload.web\n").path == "/lxc.payload.web");
    CHECK(parse_cgroup("nonsense\n\n").path.empty());
    CHECK(parse_cgroup("0::/\n").path == "/");
}

TEST_CASE("a command line is one line of bounded length") {
    CHECK(command_line_text(std::string_view("a\0-b c\0\0", 8)) == "a -b c");
    CHECK(command_line_text("x\n\x1b[2Jy") == "x  [2Jy");
    CHECK(command_line_text("").empty());
    CHECK(command_line_text(std::string(5000, 'x')).size() == 1024);
}

TEST_CASE("lines through a small buffer") {
    FakeProc proc;
    proc.write("file", "one\n\nlonger than the buffer, and by far\nlast");
    auto lines = LineReader::open(proc.path("file"), 16);
    REQUIRE(lines);
    std::string_view line;
    REQUIRE(lines->next(line));
    CHECK(line == "one");
    REQUIRE(lines->next(line));
    CHECK(line.empty());
    REQUIRE(lines->next(line));
    CHECK(line == "longer than the ");
    REQUIRE(lines->next(line));
    CHECK(line == "last");
    CHECK_FALSE(lines->next(line));
    CHECK_FALSE(lines->failed());
    CHECK_FALSE(LineReader::open(proc.path("none"), 16));
    auto directory = LineReader::open(proc.root(), 16);
    REQUIRE(directory);
    CHECK_FALSE(directory->next(line));
    CHECK(directory->failed());
}

TEST_CASE("a process as its files describe it") {
    FakeProc proc;
    proc.add_process(42, "tool", 100, "/opt/tool (deleted)", 7);
    const auto stat = read_stat(proc.root(), 42);
    REQUIRE(stat);
    const ProcessInfo info = read_process_info(proc.root(), 42, *stat);
    CHECK(info.pid == 42);
    CHECK(info.parent_pid == 7);
    CHECK(info.start_time_ns == 1'000'000'000);  // 100 ticks of 10 ms
    CHECK(info.comm == "tool");
    CHECK(info.exe == "/opt/tool");
    CHECK(info.command_line == "/opt/tool (deleted) -x");
    CHECK(info.cgroup == "/user.slice");
    CHECK_FALSE(read_stat(proc.root(), 43));
}
