#include "agent/process/process_list.h"

#include <catch2/catch.hpp>
#include <unistd.h>

#include "agent/process/named_processes.h"
#include "fake_proc.h"

using namespace flamewire::agent;
using flamewire::agent::test::FakeProc;

TEST_CASE("users from passwd text") {
    const auto names = parse_passwd(
        "root:x:0:0:root:/root:/bin/sh\nbad\n:x:5:\nwww-data:x:33:33::/var/"
        "www:\nname:x:notanumber:1\nsecond:x:0:0:\nlast:x:7");
    CHECK(names.size() == 2);
    CHECK(names.at(0) == "root");
    CHECK(names.at(33) == "www-data");
}

TEST_CASE("the list leaves out kernel threads, zombies and the agent itself") {
    FakeProc proc;
    const std::string id(64, 'c');
    proc.add_process(10, "one", 5);
    proc.add_process(11, "two", 5, "/usr/bin/two-with-a-long-name");
    proc.write("proc/11/status", "Uid:\t0\t33\t0\t0\nNStgid:\t11\t4\n");
    proc.write("proc/11/cgroup", "0::/docker/" + id + "\n");
    proc.write("proc/12/stat", "12 (kworker) S 2 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 3 0 0");
    proc.write("proc/13/stat", "13 (dead) Z 2 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 3 0 0");
    proc.add_process(static_cast<std::uint32_t>(::getpid()), "ourselves", 5);
    proc.write("proc/14x/stat", "14 (no) S");
    proc.write("passwd", "www-data:x:33:33::/:\n");
    const auto list = list_processes(std::chrono::milliseconds(0), 10, proc.root(), proc.path("passwd"));
    REQUIRE(list.size() == 2);
    CHECK(list[0].pid == 10);
    CHECK(list[0].user == "1001");
    CHECK(list[0].ns_pid == 0);
    CHECK(list[1].user == "www-data");
    CHECK(list[1].ns_pid == 4);
    CHECK(list[1].container_id == id);
    CHECK(list_processes(std::chrono::milliseconds(0), 1, proc.root(), proc.path("none")).size() == 1);

    using Pids = std::vector<std::uint32_t>;
    CHECK(NamedProcesses(std::vector<std::string>{"one"}, proc.root()).scan() == Pids{10});
    CHECK(NamedProcesses(std::vector<std::string>{"two-with-a-long-name"}, proc.root()).scan() == Pids{11});
    CHECK(NamedProcesses(std::vector<std::string>{"kworker"}, proc.root()).scan().empty());
    CHECK(NamedProcesses(std::vector<std::string>{""}, proc.root()).scan().empty());
    NamedProcesses both({"one", "two-with-a-long-name", "three"}, proc.root());
    CHECK(both.scan() == Pids{10, 11});
    CHECK(both.text() == "one or two-with-a-long-name or three");
    CHECK(identify_process(11, proc.root())->command_line == "/usr/bin/two-with-a-long-name -x");
    CHECK_FALSE(identify_process(99, proc.root()));
}

TEST_CASE("Processes of a name start, exit, and take the name later") {
    using Pids = std::vector<std::uint32_t>;
    FakeProc proc;
    proc.add_process(10, "server", 5);
    proc.add_process(11, "sh", 5);
    NamedProcesses named(std::vector<std::string>{"server"}, proc.root());
    CHECK(named.scan() == Pids{10});
    proc.add_process(12, "server", 5);
    CHECK(named.scan() == Pids{10, 12});
    proc.add_process(11, "server", 5);  // a shell that executed the program
    CHECK(named.scan() == Pids{10, 11, 12});
    proc.write("proc/12/stat", "12 (server) Z 2 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 3 0 0");
    CHECK(named.scan() == Pids{10, 11});
    // A late one is detected in one of ten scans.
    proc.add_process(13, "sh", 5);
    for (int i = 0; i < 10; ++i) CHECK(named.scan() == Pids{10, 11});
    proc.add_process(13, "server", 5);
    int seen = 0;
    for (int i = 0; i < 10; ++i) seen += named.scan() == Pids{10, 11, 13} ? 1 : 0;
    CHECK(seen >= 1);
    CHECK(named.scan() == Pids{10, 11, 13});
}
