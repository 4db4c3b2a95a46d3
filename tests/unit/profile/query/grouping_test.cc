// Root frames for processes, threads, containers and CPUs, and filters by container, counted by hand.
#include "profile/query/grouping.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "../batch_maker.h"
#include "profile/formats/collapsed.h"
#include "profile/formats/svg.h"

namespace flamewire::profile {
namespace {

const std::string first_id = "c0ffee" + std::string(58, '1'), second_id = "c0ffee" + std::string(58, '2');
const std::string pod = "7e5f5ac4-1af0-4ae7-8dd2-3a3d2d6f5d2b";

// web (10) in the first container: threads 10 and 11 on CPU 0 and 1. web (20) in the second one, on CPU 1. cron (30) in
// no container, on CPU 0. It was renamed to backup.
struct Machine {
    BatchMaker maker;
    Store store;

    Machine() {
        const wire::Id event = maker.event("cycles", "cycles");
        const auto process = [&](std::uint32_t pid, const std::string& comm, const std::string& container,
                                 const std::string& cgroup, std::uint32_t generation = 0) {
            const wire::Id id = maker.process(pid, 1, generation, comm);
            maker.batch().processes.back().container_id = maker.string(container);
            maker.batch().processes.back().cgroup = maker.string(cgroup);
            return id;
        };
        const wire::Id web = process(10, "web", first_id, "/kubepods/pod" + pod + "/" + first_id);
        const wire::Id other = process(20, "web", second_id, "/system.slice/docker-" + second_id + ".scope");
        const wire::Id cron = process(30, "cron", "", "/system.slice/cron.service");
        const wire::Id backup = process(30, "backup", "", "/system.slice/cron.service", 1);
        const wire::Id main = maker.named("main"), work = maker.named("work"), leaf = maker.named("leaf");
        const wire::Id deep = maker.stack({main, work, work, leaf}), flat = maker.stack({main, work});
        maker.row(1, event, maker.thread(web, 10, "web"), deep, 1, 10, 0);
        maker.row(1, event, maker.thread(web, 11, "pool;1"), flat, 2, 20, 1);
        maker.row(2, event, maker.thread(other, 20, "web"), deep, 4, 40, 1);
        maker.row(2, event, maker.thread(cron, 30, "cron"), flat, 8, 80, 0);
        maker.row(3, event, maker.thread(backup, 30, "backup"), 0, 16, 160, 0);
        REQUIRE(store.apply(maker.take()));
    }

    std::string tree(GroupBy by, const TreeOptions& options = {}, const Filter& filter = {}) const {
        const GroupedTree grouped = grouped_tree(store, filter, by, options);
        std::string text;
        std::vector<std::size_t> depth(grouped.tree.nodes.size());
        for (std::size_t i = 1; i < depth.size(); ++i) {
            const CallTree::Node& node = grouped.tree.nodes[i];
            depth[i] = depth[node.parent] + 1;
            const Function& function = grouped.tree.functions[node.function];
            CHECK((function.kind == group_frame) == (by != GroupBy::none && options.path.empty() && depth[i] == 1));
            text += fmt::format("{} {}>{} {}/{}\n", i, node.parent, grouped.name(store, function), node.self.samples,
                                node.total.samples);
        }
        return text;
    }
    std::string roots(GroupBy by) const {
        const GroupedTree grouped = grouped_tree(store, {}, by);
        std::string text;
        for (std::size_t i = 1; i < grouped.tree.nodes.size(); ++i)
            if (const CallTree::Node& node = grouped.tree.nodes[i]; node.parent == 0)
                text += fmt::format("{} {};", grouped.name(store, grouped.tree.functions[node.function]),
                                    node.total.samples);
        return text;
    }
    std::uint64_t samples(const Filter& filter) const { return call_tree(store, filter).total.samples; }
};

}  // namespace

TEST_CASE("a root frame for each process, thread, container and CPU") {
    const Machine machine;
    CHECK(machine.roots(GroupBy::process) == "backup (30) 16;cron (30) 8;web (20) 4;web (10) 3;");
    CHECK(machine.roots(GroupBy::thread) == "backup (30) 16;cron (30) 8;web (20) 4;pool;1 (11) 2;web (10) 1;");
    CHECK(machine.roots(GroupBy::container) == "[no container] 24;c0ffee222222 4;c0ffee111111 3;");
    CHECK(machine.roots(GroupBy::cpu) == "CPU 0 25;CPU 1 6;");
    CHECK(machine.tree(GroupBy::process, {.max_nodes = 5}) ==
          "1 0>backup (30) 16/16\n2 0>cron (30) 0/8\n3 2>main 0/8\n4 3>work 8/8\n");
    CHECK(machine.tree(GroupBy::process, {.path = {"web (10)"}}) ==
          "1 0>main 0/3\n2 1>work 2/3\n3 2>work 0/1\n4 3>leaf 1/1\n");
    CHECK(machine.tree(GroupBy::thread, {.path = {"pool;1 (11)"}}) == "1 0>main 0/2\n2 1>work 2/2\n");
    // Groups do not change the number of samples, with or without the filter.
    for (const GroupBy by : {GroupBy::none, GroupBy::process, GroupBy::thread, GroupBy::container, GroupBy::cpu})
        CHECK(grouped_tree(machine.store, {}, by).tree.total == Weight{31, 310});
    CHECK(machine.tree(GroupBy::cpu, {}, {.pids = {20}}) ==
          "1 0>CPU 1 0/4\n2 1>main 0/4\n3 2>work 0/4\n4 3>work 0/4\n5 4>leaf 4/4\n");
    CHECK(machine.tree(GroupBy::none) == "1 0>main 0/15\n2 1>work 10/15\n3 2>work 0/5\n4 3>leaf 5/5\n");
    CHECK(grouped_tree(machine.store, {}, GroupBy::process).tree.newest_ns == call_tree(machine.store, {}).newest_ns);
}

TEST_CASE("grouped trees in every shape") {
    const Machine machine;
    const std::vector<std::string> web{"web (20)"};
    CHECK(machine.tree(GroupBy::process, {.path = web, .inverted = true}) ==
          "1 0>leaf 0/4\n2 1>work 0/4\n3 2>work 0/4\n4 3>main 4/4\n");
    CHECK(machine.tree(GroupBy::process, {.path = web, .collapse_recursion = true}) ==
          "1 0>main 0/4\n2 1>work 0/4\n3 2>leaf 4/4\n");
    CHECK(machine.tree(GroupBy::process, {.path = web, .merge = MergeBy::line}) ==
          "1 0>main 0/4\n2 1>work 0/4\n3 2>work 0/4\n4 3>leaf 4/4\n");
    CHECK(machine.tree(GroupBy::process, {.path = {"web (20)\x1e"
                                                   "5\x1e",
                                                   "main"}}) == "1 0>work 0/4\n2 1>work 0/4\n3 2>leaf 4/4\n");
    CHECK(machine.tree(GroupBy::cpu, {.hidden = {{"CPU 0"}, {"CPU 1", "main", "work", "work"}}}) ==
          "1 0>CPU 1 0/2\n2 1>main 0/2\n3 2>work 2/2\n");
    CHECK(machine.tree(GroupBy::process, {.path = {"web (21)"}}).empty());
    CHECK(machine.tree(GroupBy::process, {.path = {"main"}}).empty());
}

TEST_CASE("folded stacks and pictures start with the group") {
    const Machine machine;
    CHECK(collapsed(machine.store, {}, {.group = GroupBy::process}) ==
          "backup (30) 16\ncron (30);main;work 8\nweb (10);main;work 2\nweb (10);main;work;work;leaf 1\n"
          "web (20);main;work;work;leaf 4\n");
    CHECK(collapsed(machine.store, {}, {.group = GroupBy::thread})
              .starts_with("backup (30) 16\ncron (30);main;work 8\npool:1 (11);main;work 2\n"));
    CHECK(collapsed(machine.store, {}, {.group = GroupBy::cpu}) ==
          "CPU 0;backup 16\nCPU 0;cron;main;work 8\nCPU 0;web;main;work;work;leaf 1\nCPU 1;pool:1;main;work 2\n"
          "CPU 1;web;main;work;work;leaf 4\n");
    CHECK(collapsed(machine.store, {}, {.weights = true, .group = GroupBy::container})
              .starts_with("[no container];backup 160\n[no container];cron;main;work 80\nc0ffee111111;"));
    const std::string picture = svg(machine.store, {.event = 1}, {.group = GroupBy::process}).value();
    CHECK(picture.find("<title>cron (30), 8 samples") != std::string::npos);
    CHECK(parse_group("") == GroupBy::none);
    CHECK(parse_group("cpu") == GroupBy::cpu);
    CHECK_FALSE(parse_group("planet"));
}

TEST_CASE("a filter by container, pod or cgroup selects their samples") {
    const Machine machine;
    CHECK(machine.samples({.containers = {first_id}}) == 3);
    CHECK(machine.samples({.containers = {"c0ffee1"}}) == 3);
    CHECK(machine.samples({.containers = {"c0ffee"}}) == 7);
    CHECK(machine.samples({.containers = {"c0ffee1", second_id}}) == 7);
    CHECK(machine.samples({.containers = {"c0f"}}) == 0);
    CHECK(machine.samples({.pods = {pod}}) == 3);
    CHECK(machine.samples({.cgroups = {"system.slice"}}) == 28);
    CHECK(machine.samples({.cgroups = {"/system.slice/cron.service"}}) == 24);
    // All conditions must match.
    CHECK(machine.samples({.containers = {second_id}, .pods = {pod}}) == 0);
    CHECK(machine.samples({.tids = {11}, .containers = {first_id}}) == 2);
    CHECK(machine.samples({.pids = {10}, .cgroups = {"/system.slice"}}) == 0);
}

}  // namespace flamewire::profile
