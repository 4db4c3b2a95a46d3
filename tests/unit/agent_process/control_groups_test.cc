#include "agent/process/control_groups.h"

#include <catch2/catch.hpp>

#include "fake_proc.h"

using namespace flamewire::agent;
using flamewire::ErrorCode;
using flamewire::agent::test::FakeProc;

TEST_CASE("where control groups are mounted: version 2, else the perf_event controller") {
    const std::string first =
        "30 25 0:26 / /sys/fs/cgroup/cpu rw,nosuid - cgroup cgroup rw,cpu\n"
        "31 25 0:27 / /sys/fs/cgroup/perf\\040event rw shared:9 - cgroup cgroup rw,perf_event\n";
    CHECK(cgroup_mount(first) == "/sys/fs/cgroup/perf event");
    CHECK(cgroup_mount(first + "32 25 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n") ==
          "/sys/fs/cgroup/unified");
    CHECK(cgroup_mount("22 1 0:20 / /proc rw - proc proc rw\nnonsense\n - cgroup\n").empty());
    CHECK(cgroup_mount("").empty());
}

TEST_CASE("control groups by folder and by path; a group inside of another one is dropped") {
    FakeProc proc;
    const std::string mount = proc.path("groups");
    proc.write("groups/a/inner/cgroup.procs", "");
    proc.write("groups/ab/cgroup.procs", "");
    proc.write("proc/self/mountinfo", "32 25 0:28 / " + mount + " rw - cgroup2 cgroup2 rw\n");
    const auto found = [&](std::vector<std::string> names) { return find_cgroups(names, proc.root()); };
    using Folders = std::vector<std::string>;
    CHECK(*found({"a"}) == Folders{mount + "/a"});
    CHECK(*found({"/a/inner/"}) == Folders{mount + "/a/inner"});
    CHECK(*found({mount + "/a"}) == Folders{mount + "/a"});
    CHECK(*found({"/"}) == Folders{mount});
    CHECK(*found({"ab", "a/inner", "a", "a"}) == Folders{mount + "/a", mount + "/ab"});
    const auto none = found({"a", "c"});
    REQUIRE_FALSE(none);
    CHECK(none.error().code == ErrorCode::not_found);
    CHECK(none.error().message == "there is no control group 'c' below " + mount);

    // Outside of the mount, the answer does not reveal whether the folder exists.
    for (const std::string& elsewhere : {proc.path("proc"), mount + "/../proc", mount + "/a/../../proc",
                                         std::string("../proc"), mount + "/..", std::string("..")}) {
        const auto refused = found({elsewhere});
        REQUIRE_FALSE(refused);
        CHECK(refused.error().message == "there is no control group '" + elsewhere + "' below " + mount);
    }

    proc.write("proc/self/mountinfo", "");
    for (const std::string& name : {std::string("a"), mount, std::string("/none")}) {
        const auto unmounted = found({name});
        REQUIRE_FALSE(unmounted);
        CHECK(unmounted.error().message == "there is no control group '" + name +
                                               "': no cgroup2 is mounted here. Try: mount -t cgroup2 none "
                                               "/sys/fs/cgroup");
    }
}

TEST_CASE("a container by its id or by a prefix of the id") {
    FakeProc proc;
    const auto none = find_container("abc", proc.root());
    REQUIRE_FALSE(none);
    CHECK(none.error().message == "no container 'abc': no process here runs in one");

    const std::string one = "abc1" + std::string(60, '0'), two = "abd2" + std::string(60, '0');
    for (const std::uint32_t pid : {10U, 11U, 12U, 13U}) proc.add_process(pid, "one", 5);
    proc.write("proc/10/cgroup", "0::/system.slice/docker-" + one + ".scope/inner\n");
    proc.write("proc/11/cgroup", "0::/system.slice/docker-" + one + ".scope\n");
    proc.write("proc/12/cgroup", "0::/kubepods/pod1/" + two + "\n");
    proc.write("proc/13/cgroup", "0::/user.slice\n");
    const auto found = find_container("abc", proc.root());
    REQUIRE(found);
    CHECK(found->id == one);
    CHECK(found->cgroup == "/system.slice/docker-" + one + ".scope");
    CHECK(find_container(two, proc.root())->cgroup == "/kubepods/pod1/" + two);

    const auto several = find_container("ab", proc.root());
    REQUIRE_FALSE(several);
    CHECK(several.error().code == ErrorCode::invalid);
    CHECK(several.error().message == "several containers begin with 'ab': " + one + ", " + two);
    const auto other = find_container("xyz", proc.root());
    REQUIRE_FALSE(other);
    CHECK(other.error().message == "no container 'xyz' (there are: abc100000000, abd200000000)");
}
