// Two profiles compared, counted by hand.
#include "profile/query/diff.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "../batch_maker.h"

namespace flamewire::profile {

namespace {

// before: main;work 6 | main;old 3 | idle 1. The weight in cycles is ten times that.
struct Before {
    BatchMaker maker;
    Store store;

    Before() {
        const wire::Id event = maker.event("cycles", "cycles");
        const wire::Id thread = maker.thread(maker.process(10), 10, "t");
        const wire::Id idle = maker.named("idle", 0, 0, "a.cc", 90);
        const wire::Id main = maker.named("main", 0, 0, "a.cc", 1);
        const wire::Id work = maker.named("work", 0, 0, "a.cc", 20);
        const wire::Id old = maker.named("old", 0, 0, "a.cc", 40);
        maker.row(100, event, thread, maker.stack({main, work}), 6, 60);
        maker.row(110, event, thread, maker.stack({main, old}), 3, 30);
        maker.row(119, event, thread, maker.stack({idle}), 1, 10);
        REQUIRE(store.apply(maker.take()));
    }
};

// after: main;fresh 5 | main;work 10 | main;work;work 5 of a second thread. Another build: work begins at another line.
struct After {
    BatchMaker maker;
    Store store;

    After() {
        const wire::Id event = maker.event("cycles", "cycles");
        const wire::Id process = maker.process(77);
        const wire::Id first = maker.thread(process, 77, "t");
        const wire::Id second = maker.thread(process, 78, "t2");
        const wire::Id fresh = maker.named("fresh", 0, 0, "b.cc", 7);
        const wire::Id work = maker.named("work", 0, 0, "a.cc", 24);
        const wire::Id main = maker.named("main", 0, 0, "a.cc", 1);
        maker.row(5, event, first, maker.stack({main, fresh}), 5, 50);
        maker.row(5, event, first, maker.stack({main, work}), 10, 100);
        maker.row(6, event, second, maker.stack({main, work, work}), 5, 50);
        REQUIRE(store.apply(maker.take()));
    }
};

std::string text(const WeightPair& self, const WeightPair& total) {
    return fmt::format("{}/{} {}/{}", self.before.samples, total.before.samples, self.after.samples,
                       total.after.samples);
}

// "name self/total of before self/total of after", with indented children.
std::string show(const DiffTree& tree) {
    std::string out;
    std::vector<std::vector<std::uint32_t>> children(tree.nodes.size());
    for (std::uint32_t i = 1; i < tree.nodes.size(); ++i) children[tree.nodes[i].parent].push_back(i);
    const auto visit = [&](auto& self, std::uint32_t node, int depth) -> void {
        const DiffTree::Node& at = tree.nodes[node];
        const std::string_view name = tree.functions[at.function].name;
        out += fmt::format("{:>{}}{} {}", "", 2 * depth, name.empty() ? "root" : name, text(at.self, at.total));
        if (at.pruned_children != 0) out += fmt::format(" -{}", at.pruned_children);
        out += "\n";
        for (const std::uint32_t child : children[node]) self(self, child, depth + 1);
    };
    visit(visit, 0, 0);
    return out;
}

std::string diff(const Store& before, const Store& after, const TreeOptions& options = {}) {
    const Filter all;
    return show(diff_tree({before, all}, {after, all}, options));
}

}  // namespace

TEST_CASE("a diff of two sessions has every frame of both, with the weights of each") {
    const Before before;
    const After after;
    CHECK(diff(before.store, after.store) ==
          "root 0/10 0/20\n"
          "  main 0/9 0/20\n"
          "    work 6/6 10/15\n"
          "      work 0/0 5/5\n"
          "    old 3/3 0/0\n"
          "    fresh 0/0 5/5\n"
          "  idle 1/1 0/0\n");
    const Filter all;
    const DiffTree tree = diff_tree({before.store, all}, {after.store, all});
    CHECK(tree.total == WeightPair{{10, 100}, {20, 200}});
    CHECK(tree.nodes[1].total == WeightPair{{9, 90}, {20, 200}});
    CHECK(tree.newest_ns == 70'000'000);  // end of bucket 6 of the later side
    CHECK(tree.addresses.empty());
    // Only the sides are swapped.
    CHECK(diff(after.store, before.store) ==
          "root 0/20 0/10\n"
          "  main 0/20 0/9\n"
          "    work 10/15 6/6\n"
          "      work 5/5 0/0\n"
          "    old 0/0 3/3\n"
          "    fresh 5/5 0/0\n"
          "  idle 0/0 1/1\n");
}

TEST_CASE("the sides of a diff may be threads or time ranges of one session") {
    const After after;
    const Filter first{.tids = {77}}, second{.tids = {78}}, late{.start_ns = 60'000'000};
    const std::string threads =
        "root 0/15 0/5\n"
        "  main 0/15 0/5\n"
        "    work 10/10 0/5\n"
        "      work 0/0 5/5\n"
        "    fresh 5/5 0/0\n";
    CHECK(show(diff_tree({after.store, first}, {after.store, second})) == threads);
    const Filter early{.end_ns = 60'000'000};
    CHECK(show(diff_tree({after.store, early}, {after.store, late})) == threads);
    CHECK(show(diff_tree({after.store, first}, {after.store, first})) ==
          "root 0/15 0/15\n"
          "  main 0/15 0/15\n"
          "    work 10/10 10/10\n"
          "    fresh 5/5 5/5\n");
}

TEST_CASE("the shape of a diff applies to both sides") {
    const Before before;
    const After after;
    CHECK(diff(before.store, after.store, {.inverted = true}) ==
          "root 0/10 0/20\n"
          "  work 0/6 0/15\n"
          "    main 6/6 10/10\n"
          "    work 0/0 0/5\n"
          "      main 0/0 5/5\n"
          "  old 0/3 0/0\n"
          "    main 3/3 0/0\n"
          "  fresh 0/0 0/5\n"
          "    main 0/0 5/5\n"
          "  idle 1/1 0/0\n");
    CHECK(diff(before.store, after.store, {.collapse_recursion = true}) ==
          "root 0/10 0/20\n"
          "  main 0/9 0/20\n"
          "    work 6/6 15/15\n"
          "    old 3/3 0/0\n"
          "    fresh 0/0 5/5\n"
          "  idle 1/1 0/0\n");
    // Merged by line: work at line 20 is gone, and work at line 24 is new.
    CHECK(diff(before.store, after.store, {.merge = MergeBy::line}) ==
          "root 0/10 0/20\n"
          "  main 0/9 0/20\n"
          "    work 0/0 10/15\n"
          "      work 0/0 5/5\n"
          "    work 6/6 0/0\n"
          "    old 3/3 0/0\n"
          "    fresh 0/0 5/5\n"
          "  idle 1/1 0/0\n");
    const std::string line_20 =
        "work\x1e"
        "0\x1e\x1e"
        "20";
    CHECK(diff(before.store, after.store, {.path = {"main", line_20}, .merge = MergeBy::line}) == "work 6/6 0/0\n");
    CHECK(diff(before.store, after.store, {.path = {"main", "work"}, .merge = MergeBy::line}) ==
          "work 0/0 10/15\n"
          "  work 0/0 5/5\n");
}

TEST_CASE("addresses of a diff are compared numerically within modules of the same name") {
    const auto fill = [](BatchMaker& maker, const char* path, const char* build, std::uint64_t address) {
        const wire::Id event = maker.event("cycles", "cycles");
        const wire::Id thread = maker.thread(maker.process(10), 10, "t");
        const wire::Id module = maker.module(path, build);
        maker.row(1, event, thread, maker.stack({maker.location(module, 0x1000)}), 2, 2);
        maker.row(1, event, thread, maker.stack({maker.location(module, address)}), 1, 1);
        return maker.take();
    };
    BatchMaker a, b;
    Store before, after;
    REQUIRE(before.apply(fill(a, "/old/x", "one", 0x2000)));
    REQUIRE(after.apply(fill(b, "/new/x", "two", 0x3000)));
    const KnownFrames known{{0x1000, {{"f", "f.cc", 1}}}, {0x2000, {{"f", "f.cc", 2}}}, {0x3000, {{"f", "f.cc", 2}}}};
    symbolize(before, known);
    symbolize(after, known);
    CHECK(diff(before, after) == "root 0/3 0/3\n  f 3/3 3/3\n");
    const Filter all;
    const DiffTree tree = diff_tree({before, all}, {after, all}, {.merge = MergeBy::address});
    CHECK(show(tree) == "root 0/3 0/3\n  f 2/2 2/2\n  f 1/1 0/0\n  f 0/0 1/1\n");
    REQUIRE(tree.addresses.size() == 4);
    CHECK(tree.addresses[tree.nodes[1].function] == 0x1000);
    CHECK(tree.addresses[tree.nodes[2].function] == 0x2000);
    CHECK(tree.addresses[tree.nodes[3].function] == 0x3000);
}

TEST_CASE("a diff prunes functions that are small on both sides, and zooms into functions that one side lacks") {
    const Before before;
    const After after;
    // idle is a tenth of before and absent in after. fresh is a quarter of after.
    CHECK(diff(before.store, after.store, {.min_share = 0.2}) ==
          "root 0/10 0/20 -1\n"
          "  main 0/9 0/20\n"
          "    work 6/6 10/15\n"
          "      work 0/0 5/5\n"
          "    old 3/3 0/0\n"
          "    fresh 0/0 5/5\n");
    CHECK(diff(before.store, after.store, {.max_nodes = 4}) ==
          "root 0/10 0/20 -1\n"
          "  main 0/9 0/20 -1\n"
          "    work 6/6 10/15 -1\n"
          "    old 3/3 0/0\n");
    CHECK(diff(before.store, after.store, {.path = {"idle"}}) == "idle 1/1 0/0\n");
    CHECK(diff(before.store, after.store, {.path = {"nowhere"}}) == "root 0/0 0/0\n");
    const Filter all;
    // Shares of a zoomed diff still refer to the whole.
    CHECK(diff_tree({before.store, all}, {after.store, all}, {.path = {"main", "work"}}).total ==
          WeightPair{{10, 100}, {20, 200}});
}

TEST_CASE("hidden subtrees are removed from both sides of a diff") {
    const Before before;
    const After after;
    CHECK(diff(before.store, after.store, {.hidden = {{"main", "work"}}}) ==
          "root 0/4 0/5\n"
          "  main 0/3 0/5\n"
          "    fresh 0/0 5/5\n"
          "    old 3/3 0/0\n"
          "  idle 1/1 0/0\n");
    CHECK(diff(before.store, after.store, {.hidden = {{"main"}, {"idle"}}}) == "root 0/0 0/0\n");
}

TEST_CASE("a diff with an empty side shows everything as gone or as new") {
    const Before before;
    const Store empty;
    CHECK(diff(before.store, empty, {.min_share = 0.2}) ==
          "root 0/10 0/0 -1\n"
          "  main 0/9 0/0\n"
          "    work 6/6 0/0\n"
          "    old 3/3 0/0\n");
    CHECK(diff(empty, empty) == "root 0/0 0/0\n");
    const Filter all;
    CHECK(diff_functions({empty, all}, {empty, all}).empty());
}

TEST_CASE("functions of two sessions are listed side by side, including those of one side only") {
    const Before before;
    const After after;
    const Filter all;
    std::string table;
    for (const FunctionDiff& row : diff_functions({before.store, all}, {after.store, all}))
        table += fmt::format("{} {} {}:{}\n", row.function.name, text(row.self, row.total), row.function.file,
                             row.function.line);
    // Recursion counts once. The line is that of the later side.
    CHECK(table ==
          "fresh 0/0 5/5 b.cc:7\n"
          "idle 1/1 0/0 a.cc:90\n"
          "main 0/9 0/20 a.cc:1\n"
          "old 3/3 0/0 a.cc:40\n"
          "work 6/6 15/15 a.cc:24\n");
}

TEST_CASE("the time that a side covers ends with the known data and excludes dropped ranges") {
    const Before before;  // buckets of 10 ms: 1000 ms … 1200 ms
    const auto ms = [](std::uint64_t value) { return value * 1'000'000; };
    CHECK(covered_ns(before.store, {}, ms(900)) == ms(300));
    CHECK(covered_ns(before.store, {.start_ns = ms(1050), .end_ns = ms(1150)}, ms(900)) == ms(100));
    CHECK(covered_ns(before.store, {.start_ns = ms(1300)}, ms(900)) == 0);
    CHECK(covered_ns(Store(), {}, 0) == 0);
}

}  // namespace flamewire::profile
