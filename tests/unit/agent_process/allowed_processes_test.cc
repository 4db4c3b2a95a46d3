#include "agent/process/allowed_processes.h"

#include <catch2/catch.hpp>

#include "fake_proc.h"

using namespace flamewire;
using namespace flamewire::agent;
using flamewire::agent::test::FakeProc;

namespace {

struct Machine {
    FakeProc proc;
    Machine() {
        proc.add_process(10, "web", 5, "/usr/bin/web-server");
        proc.write("proc/10/status", "Uid:\t0\t33\t0\t0\n");
        proc.add_process(11, "web", 5, "/usr/bin/database");
        proc.write("proc/11/status", "Uid:\t33\t1000\t33\t33\n");
        proc.add_process(12, "no-file", 5);
        proc.remove("proc/12/exe");
        proc.write("proc/12/status", "Uid:\t33\t33\t33\t33\n");
        proc.write("passwd", "root:x:0:0::/:\nwww-data:x:33:33::/:\n");
    }
    // The permitted pids, as text.
    std::string allowed(AllowedWords words) {
        const auto processes = AllowedProcesses::of(std::move(words), proc.path("passwd")).value();
        std::string pids;
        for (const std::uint32_t pid : {10U, 11U, 12U})
            if (!processes.refusal(pid, proc.root())) pids += std::to_string(pid) + " ";
        return pids;
    }
};

}  // namespace

TEST_CASE("without a list, every process is permitted") {
    Machine machine;
    CHECK(machine.allowed({}) == "10 11 12 ");
    CHECK_FALSE(AllowedProcesses().refusal(10, machine.proc.root()));
}

TEST_CASE("a process must match each list that is given") {
    Machine machine;
    CHECK(machine.allowed({.pids = {11, 12}, .users = {}, .commands = {}}) == "11 12 ");
    // The effective user, which determines what the process may do.
    CHECK(machine.allowed({.pids = {}, .users = {"www-data"}, .commands = {}}) == "10 12 ");
    CHECK(machine.allowed({.pids = {}, .users = {"1000"}, .commands = {}}) == "11 ");
    // The file name counts, because a process can change its comm. The comm counts if there is no file.
    CHECK(machine.allowed({.pids = {}, .users = {}, .commands = {"web*"}}) == "10 ");
    CHECK(machine.allowed({.pids = {}, .users = {}, .commands = {"database", "no-fil?"}}) == "11 12 ");
    CHECK(machine.allowed({.pids = {}, .users = {}, .commands = {"web"}}).empty());
    CHECK(machine.allowed({.pids = {}, .users = {}, .commands = {"*b*server*"}}) == "10 ");
    CHECK(machine.allowed({.pids = {}, .users = {}, .commands = {"*a*a*e"}}) == "11 ");
    CHECK(machine.allowed({.pids = {}, .users = {}, .commands = {"?", "web-server?", "*serve"}}).empty());
    CHECK(machine.allowed({.pids = {10, 11}, .users = {"33"}, .commands = {"*e*"}}) == "10 ");
}

TEST_CASE("a refusal names the process and the reason") {
    Machine machine;
    const auto allowed =
        AllowedProcesses::of({.pids = {}, .users = {"root", "1000"}, .commands = {}}, machine.proc.path("passwd"))
            .value();
    const auto refused = allowed.refusal(10, machine.proc.root());
    REQUIRE(refused);
    CHECK(refused->code == ErrorCode::permission);
    CHECK(refused->message ==
          "process 10 (web-server) is not among those that this agent may profile: --allow-user limits them");
    // Opening it reports that it has exited.
    CHECK_FALSE(allowed.refusal(99, machine.proc.root()));
    // A process that cannot be inspected is not one that has exited.
    machine.proc.write("proc/99/stat/is-a-folder", "");
    CHECK(allowed.refusal(99, machine.proc.root()));
}

TEST_CASE("an unknown user") {
    Machine machine;
    const auto unknown =
        AllowedProcesses::of({.pids = {}, .users = {"www-date"}, .commands = {}}, machine.proc.path("passwd"));
    REQUIRE_FALSE(unknown);
    CHECK_THAT(unknown.error().message, Catch::Contains("www-date") && Catch::Contains("--allow-user"));
}
