#include "agent/recording/target_members.h"

#include <catch2/catch.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

using namespace flamewire::agent;

namespace {

constexpr std::uint32_t parent = 100, child = 200, stranger = 300;

using Pids = std::set<std::uint32_t>;

RecordingPlan plan_of(std::vector<std::uint32_t> pids) {
    RecordingPlan plan;
    plan.pids = std::move(pids);
    return plan;
}

TaskRecord forked(std::uint32_t from, std::uint32_t pid, std::uint32_t tid) {
    TaskRecord task;
    task.pid = pid;
    task.tid = tid;
    task.parent_pid = from;
    return task;
}

TaskRecord exited(std::uint32_t pid, std::uint32_t tid) {
    TaskRecord task = forked(0, pid, tid);
    task.exit = true;
    return task;
}

}  // namespace

TEST_CASE("the members of a target follow forks and exits of processes") {
    const RecordingPlan plan = plan_of({parent});
    TargetMembers members(plan);
    members.follow(forked(parent, child, child));
    CHECK(members.pids() == Pids{parent, child});
    members.follow(forked(stranger, stranger + 1, stranger + 1));
    members.follow(forked(parent, parent, parent + 1));  // a thread
    members.follow(exited(parent, parent + 1));
    CHECK(members.pids() == Pids{parent, child});
    members.follow(exited(parent, parent));
    CHECK(members.pids() == Pids{child});
    // Grandchildren too, after their grandparent has exited.
    members.follow(forked(child, child + 1, child + 1));
    CHECK(members.pids() == Pids{child, child + 1});
    members.assign({stranger});
    members.insert({parent});
    CHECK(members.pids() == Pids{parent, stranger});
}

TEST_CASE("the members of control groups are the processes that were sampled") {
    RecordingPlan plan = plan_of({});
    plan.scope.wide = true;
    plan.scope.cgroups = {"/sys/fs/cgroup/demo"};
    TargetMembers members(plan);
    CHECK_FALSE(members.include(parent));
    members.saw_sample(parent);
    members.saw_sample(parent);
    CHECK(members.include(parent));
    members.follow(forked(parent, child, child));
    CHECK_FALSE(members.include(child));
    // Another process with the same pid.
    members.follow(exited(parent, parent));
    CHECK_FALSE(members.include(parent));
    members.saw_sample(parent);
    CHECK(members.include(parent));
    members.assign({});
    CHECK_FALSE(members.include(parent));
    members.saw_sample(parent);
    CHECK(members.include(parent));
    CHECK(members.living().empty());

    const RecordingPlan all = plan_of({parent});
    CHECK(TargetMembers(all).include(stranger));
}

TEST_CASE("living members exist in /proc") {
    const auto self = static_cast<std::uint32_t>(::getpid());
    const pid_t ended = ::fork();
    if (ended == 0) ::_exit(0);
    ::waitpid(ended, nullptr, 0);
    const RecordingPlan plan = plan_of({static_cast<std::uint32_t>(ended), self});
    TargetMembers members(plan);
    CHECK(members.living() == std::vector{self});
    // The leader has exited, but its other threads may run.
    members.assign({});
    CHECK(members.living() == std::vector{self});
}

TEST_CASE("a member has the breakpoints of the named process from which it descends") {
    RecordingPlan plan = plan_of({parent, stranger});
    TargetMembers members(plan);
    members.follow(forked(parent, child, child));
    members.follow(forked(child, child + 1, child + 1));
    CHECK(members.origin_of(parent) == parent);
    CHECK(members.origin_of(child) == parent);
    CHECK(members.origin_of(child + 1) == parent);
    members.follow(exited(parent, parent));
    members.follow(exited(child, child));
    CHECK(members.origin_of(child + 1) == parent);
    // Its number is free again.
    members.follow(forked(stranger, child, child));
    CHECK(members.origin_of(child) == stranger);
    // A named process has its own.
    plan.pids = {child + 1};
    members.assign({child + 1});
    CHECK(members.origin_of(child + 1) == child + 1);
    CHECK(members.origin_of(child) == child);
}

TEST_CASE("members and their origins are as before after a failed change of the target") {
    const RecordingPlan plan = plan_of({parent});
    TargetMembers members(plan);
    members.follow(forked(parent, child, child));
    const TargetMembers::State before = members.state();
    members.assign({stranger});
    CHECK(members.origin_of(child) == child);
    members.restore(before);
    CHECK(members.pids() == Pids{parent, child});
    CHECK(members.origin_of(child) == parent);
}
