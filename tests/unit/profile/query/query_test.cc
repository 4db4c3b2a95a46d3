// Queries on stores small enough to count by hand.
#include <catch2/catch.hpp>

#include "../batch_maker.h"
#include "profile/store/interruption.h"

namespace flamewire::profile {

// Two processes, three threads, two events.
//   bucket 1: t11 main;work;leaf     cycles 3 samples 30   | t11 main;work  faults 1 sample 1
//   bucket 2: t12 main;work          cycles 2 samples 50
//   bucket 5: t21 main;leaf          cycles 4 samples 7
struct Scene {
    BatchMaker maker;
    Store store;
    EventId cycles = 1, faults = 2;

    Scene() {
        const wire::Id cycles_id = maker.event("cycles", "cycles");
        const wire::Id faults_id = maker.event("page-faults", "faults");
        const wire::Id first = maker.process(10);
        const wire::Id second = maker.process(20);
        const wire::Id t11 = maker.thread(first, 11, "eleven");
        const wire::Id t12 = maker.thread(first, 12, "twelve");
        const wire::Id t21 = maker.thread(second, 21, "other");
        const wire::Id main = maker.named("main", 0, 0, "a.cc", 1);
        const wire::Id work = maker.named("work", 0, 0, "a.cc", 2);
        const wire::Id leaf = maker.named("leaf", 0, 0, "b.cc", 3);
        maker.row(1, cycles_id, t11, maker.stack({main, work, leaf}), 3, 30);
        maker.row(1, faults_id, t11, maker.stack({main, work}), 1, 1);
        maker.row(2, cycles_id, t12, maker.stack({main, work}), 2, 50);
        maker.row(5, cycles_id, t21, maker.stack({main, leaf}), 4, 7);
        REQUIRE(store.apply(maker.take()));
    }
};

TEST_CASE("a query ends when it is interrupted") {
    const Scene scene;
    Interruption interruption;
    const auto ask = [&] { return call_tree(scene.store, {.event = scene.cycles}).nodes.size(); };
    const std::size_t nodes = ask();
    const Interruption::Scope scope(interruption);
    CHECK(ask() == nodes);
    interruption.ask();
    CHECK_THROWS_AS(ask(), Interrupted);
    {
        const Interruption other;
        const Interruption::Scope inner(other);
        CHECK(ask() == nodes);
    }
    CHECK_THROWS_AS(ask(), Interrupted);
}

TEST_CASE("a call tree has sums, order and the newest time") {
    const Scene scene;
    const CallTree tree = call_tree(scene.store, {.event = scene.cycles});
    CHECK(show(scene.store, tree) ==
          "root 0/9\n"
          "  main 0/9\n"
          "    work 2/5\n"
          "      leaf 3/3\n"
          "    leaf 4/4\n");
    CHECK(tree.total == Weight{9, 87});
    CHECK(tree.nodes[0].total == tree.total);
    CHECK(tree.nodes[2].self == Weight{2, 50});
    CHECK(tree.nodes[2].total == Weight{5, 80});
    CHECK(tree.newest_ns == 60'000'000);
    for (std::size_t i = 1; i < tree.nodes.size(); ++i) CHECK(tree.nodes[i].parent < i);
}

TEST_CASE("a module has the stacks with its innermost frame, and those with any of its frames once") {
    BatchMaker maker;
    const wire::Id event = maker.event("cycles", "cycles");
    const wire::Id thread = maker.thread(maker.process(10), 11, "eleven");
    const wire::Id app = maker.module("/usr/bin/app"), libc = maker.module("/lib/libc.so.6");
    (void)maker.module("/lib/never-sampled.so");
    const wire::Id main = maker.location(app, 0x10), callback = maker.location(app, 0x20),
                   qsort = maker.location(libc, 0x30), script = maker.named("script");
    maker.row(1, event, thread, maker.stack({main, qsort, callback}), 2, 20);  // app twice in the stack, libc between
    maker.row(1, event, thread, maker.stack({main, qsort}), 3, 5);
    maker.row(1, event, thread, maker.stack({script}), 7, 70);  // of no module
    Store store;
    REQUIRE(store.apply(maker.take()));
    const auto rows = modules(store, {.event = 1});
    REQUIRE(rows.size() == 2);
    CHECK(store.modules()[rows[0].module].name == "app");
    CHECK(rows[0].self == Weight{2, 20});
    CHECK(rows[0].total == Weight{5, 25});
    CHECK(store.modules()[rows[1].module].name == "libc.so.6");
    CHECK(rows[1].self == Weight{3, 5});
    CHECK(rows[1].total == Weight{5, 25});
    CHECK(modules(store, {.event = 1, .tids = {12}}).empty());
}

TEST_CASE("every filter excludes what it should") {
    const Scene scene;
    const auto total = [&](const Filter& filter) {
        const Weight weight = call_tree(scene.store, filter).total;
        CHECK(thread_summary(scene.store, filter).empty() == (weight == Weight{}));
        Weight sum;
        for (const FunctionRow& row : functions(scene.store, filter)) sum += row.self;
        CHECK(sum == weight);
        return weight;
    };
    CHECK(total({.event = scene.cycles}) == Weight{9, 87});
    CHECK(total({.event = scene.faults}) == Weight{1, 1});
    CHECK(total({.event = 0}) == Weight{});
    CHECK(total({.event = 3}) == Weight{});
    CHECK(total({.event = scene.cycles, .pids = {10}}) == Weight{5, 80});
    CHECK(total({.event = scene.cycles, .pids = {10, 20}}) == Weight{9, 87});
    CHECK(total({.event = scene.cycles, .tids = {12, 21}}) == Weight{6, 57});
    CHECK(total({.event = scene.cycles, .pids = {20}, .tids = {12}}) == Weight{});
    CHECK(total({.event = scene.cycles, .pids = {99}}) == Weight{});
    // A row belongs to a range by the start of its bucket. The end is exclusive.
    CHECK(total({.event = scene.cycles, .start_ns = 10'000'000, .end_ns = 20'000'000}) == Weight{3, 30});
    CHECK(total({.event = scene.cycles, .start_ns = 10'000'001, .end_ns = 20'000'001}) == Weight{2, 50});
    CHECK(total({.event = scene.cycles, .start_ns = 50'000'000}) == Weight{4, 7});
    CHECK(total({.event = scene.cycles, .start_ns = 50'000'001}) == Weight{});
    CHECK(total({.event = scene.cycles, .start_ns = 30'000'000, .end_ns = 20'000'000}) == Weight{});
    CHECK(total({.event = scene.cycles, .end_ns = 0}) == Weight{});
}

TEST_CASE("samples of all events add up, but their weights have no common unit") {
    const Scene scene;
    CHECK(call_tree(scene.store, {}).total == Weight{10, 0});
    CHECK(show(scene.store, functions(scene.store, {})) == "leaf 7/7;work 3/6;main 0/10;");
    CHECK(call_tree(scene.store, {.pids = {20}}).newest_ns == 60'000'000);
    CHECK(call_tree(scene.store, {.pids = {10}}).newest_ns == 30'000'000);
}

TEST_CASE("zoom makes a subtree the root") {
    const Scene scene;
    const Filter filter{.event = scene.cycles};
    const CallTree tree = call_tree(scene.store, filter, {.path = {"main", "work"}});
    CHECK(show(scene.store, tree) ==
          "work 2/5\n"
          "  leaf 3/3\n");
    CHECK(tree.total == Weight{5, 80});
    CHECK(tree.nodes[0].function == 0);
    CHECK(call_tree(scene.store, filter, {.path = {"work"}}).total == Weight{});
    CHECK(call_tree(scene.store, filter, {.path = {"main", "no such name"}}).nodes.size() == 1);
}

TEST_CASE("pruned weight stays in the total, and zoom finds pruned nodes") {
    const Scene scene;
    const Filter filter{.event = scene.cycles};
    // Of 87: main 87, work 80, leaf below work 30, leaf below main 7 (8 %).
    const CallTree tree = call_tree(scene.store, filter, {.min_share = 0.1});
    CHECK(show(scene.store, tree) ==
          "root 0/9\n"
          "  main 0/9 -1\n"
          "    work 2/5\n"
          "      leaf 3/3\n");
    CHECK(show(scene.store, call_tree(scene.store, filter, {.min_share = 0.5})) ==
          "root 0/9\n"
          "  main 0/9 -1\n"
          "    work 2/5 -1\n");
    CHECK(show(scene.store, call_tree(scene.store, filter, {.min_share = 0.1, .path = {"main", "leaf"}})) ==
          "leaf 4/4\n");
    CHECK(show(scene.store, call_tree(scene.store, filter, {.max_nodes = 4})) == show(scene.store, tree));
    CHECK(show(scene.store, call_tree(scene.store, filter, {.max_nodes = 1})) == "root 0/9 -1\n");
    CHECK(call_tree(scene.store, filter, {.max_nodes = 5}).nodes.size() == 5);
}

TEST_CASE("recursion counts once in totals") {
    BatchMaker maker;
    const wire::Id event = maker.event("cycles", "cycles");
    const wire::Id thread = maker.thread(maker.process(1), 1);
    const wire::Id f = maker.named("f", 0, 0, "r.cc", 1);
    const wire::Id f_other_line = maker.named("f", 0, 0, "r.cc", 2);
    const wire::Id g = maker.named("g", 0, 0, "r.cc", 9);
    maker.row(1, event, thread, maker.stack({f, g, f, f_other_line, g}), 5, 5);
    maker.row(1, event, thread, maker.stack({f, f}), 2, 2);
    Store store;
    REQUIRE(store.apply(maker.take()));
    CHECK(show(store, functions(store, {})) == "g 5/5;f 2/7;");
    const std::vector<LineRow> lines = line_heat(store, {}, "r.cc");
    REQUIRE(lines.size() == 3);
    CHECK((lines[0].line == 1 && lines[0].self.samples == 2 && lines[0].total.samples == 7));
    CHECK((lines[1].line == 2 && lines[1].self.samples == 0 && lines[1].total.samples == 5));
    CHECK((lines[2].line == 9 && lines[2].self.samples == 5 && lines[2].total.samples == 5));
    const std::vector<FileRow> files = source_files(store, {});
    REQUIRE(files.size() == 1);
    CHECK(store.string(files[0].file) == "r.cc");
    CHECK(files[0].self.samples == 7);
    CHECK(files[0].total.samples == 7);
}

TEST_CASE("inlined and not inlined forms are two nodes of a tree and one row of a table") {
    BatchMaker maker;
    const wire::Id event = maker.event("cycles", "cycles");
    const wire::Id thread = maker.thread(maker.process(1), 1);
    const wire::Id app = maker.module("/app", "a");
    const wire::Id with_inline = maker.location(app, 0x10);
    const wire::Id outlined = maker.location(app, 0x20);
    maker.row(1, event, thread, maker.stack({with_inline}), 3, 3);
    maker.row(1, event, thread, maker.stack({with_inline, outlined}), 2, 2);
    Store store;
    REQUIRE(store.apply(maker.take()));
    symbolize(store, {{0x10, {{"get", "get.h", 5, true}, {"caller", "a.cc", 50, false}}},
                      {0x20, {{"get", "get.h", 6, false}}}});
    CHECK(show(store, call_tree(store, {})) ==
          "root 0/5\n"
          "  caller 0/5\n"
          "    ~get 3/5\n"
          "      get 2/2\n");
    const std::vector<FunctionRow> rows = functions(store, {});
    CHECK(show(store, rows) == "get 5/5;caller 0/5;");
    CHECK(rows[0].function.kind == FrameKind::user);
    const std::vector<LineRow> lines = line_heat(store, {}, "get.h");
    REQUIRE(lines.size() == 2);
    CHECK((lines[0].line == 5 && lines[0].self.samples == 3 && lines[0].total.samples == 5));
    CHECK((lines[1].line == 6 && lines[1].self.samples == 2 && lines[1].total.samples == 2));
    CHECK(line_heat(store, {}, "a.cc")[0].self == Weight{});
    const std::vector<FileRow> files = source_files(store, {});
    REQUIRE(files.size() == 2);
    CHECK((store.string(files[0].file) == "get.h" && files[0].self.samples == 5 && files[0].total.samples == 5));
    CHECK((store.string(files[1].file) == "a.cc" && files[1].self.samples == 0 && files[1].total.samples == 5));
}

TEST_CASE("a function that occurs only inlined is shown as inlined") {
    BatchMaker maker;
    const wire::Id event = maker.event("cycles", "cycles");
    const wire::Id thread = maker.thread(maker.process(1), 1);
    maker.row(1, event, thread, maker.stack({maker.location(maker.module("/app", "a"), 0x10)}));
    Store store;
    REQUIRE(store.apply(maker.take()));
    symbolize(store, {{0x10, {{"get", "", 0, true}, {"caller", "", 0, false}}}});
    CHECK(functions(store, {})[0].function.kind == FrameKind::inlined);
    CHECK(thread_summary(store, {})[0].top[0].function.kind == FrameKind::inlined);
}

TEST_CASE("equal names in different modules are different functions") {
    BatchMaker maker;
    const wire::Id event = maker.event("cycles", "cycles");
    const wire::Id thread = maker.thread(maker.process(1), 1);
    const wire::Id a = maker.named("init", maker.module("/liba.so", "a"));
    const wire::Id b = maker.named("init", maker.module("/libb.so", "b"));
    maker.row(1, event, thread, maker.stack({a}), 3);
    maker.row(1, event, thread, maker.stack({b}), 1);
    maker.row(1, event, thread, maker.stack({b, maker.named("leaf")}), 7);
    Store store;
    REQUIRE(store.apply(maker.take()));
    CHECK(show(store, functions(store, {})) == "leaf 7/7;init 3/3;init 1/8;");
    // A path of names that fits both leads to the heavier one.
    CHECK(call_tree(store, {}, {.path = {"init"}}).total.samples == 8);
}

TEST_CASE("threads are listed by weight with their hottest functions") {
    const Scene scene;
    const std::vector<ThreadRow> rows = thread_summary(scene.store, {.event = scene.cycles});
    REQUIRE(rows.size() == 3);
    CHECK(scene.store.threads()[rows[0].thread].tid == 12);
    CHECK(rows[0].weight == Weight{2, 50});
    CHECK(scene.store.threads()[rows[1].thread].tid == 11);
    CHECK(scene.store.threads()[rows[2].thread].comm == "other");
    REQUIRE(rows[0].top.size() == 1);
    CHECK(scene.store.string(rows[0].top[0].function.name) == "work");
    CHECK(rows[0].top[0].self == Weight{2, 50});
}

TEST_CASE("a thread's top list has at most five functions") {
    BatchMaker maker;
    const wire::Id event = maker.event("cycles", "cycles");
    const wire::Id thread = maker.thread(maker.process(1), 1);
    for (std::uint32_t i = 1; i <= 7; ++i)
        maker.row(1, event, thread, maker.stack({maker.named("f" + std::to_string(i))}), i, i);
    Store store;
    REQUIRE(store.apply(maker.take()));
    const std::vector<ThreadRow> rows = thread_summary(store, {});
    REQUIRE(rows.size() == 1);
    CHECK(rows[0].weight == Weight{28, 28});
    REQUIRE(rows[0].top.size() == 5);
    CHECK(store.string(rows[0].top[0].function.name) == "f7");
    CHECK(store.string(rows[0].top[4].function.name) == "f3");
}

TEST_CASE("the weight of a sample without a stack belongs to the root, and is unresolved") {
    BatchMaker maker;
    const wire::Id event = maker.event("cycles", "cycles");
    maker.row(1, event, 0, 0, 2, 9);
    Store store;
    REQUIRE(store.apply(maker.take()));
    CHECK(show(store, call_tree(store, {})) == "root 2/2\n");
    CHECK(unresolved(store, {}) == Weight{2, 9});
    CHECK(functions(store, {}).empty());
    REQUIRE(thread_summary(store, {}).size() == 1);
    CHECK(thread_summary(store, {})[0].top.empty());
}

TEST_CASE("a user-space sample of an inaccessible process is unresolved, a kernel sample is not") {
    BatchMaker maker;
    const wire::Id event = maker.event("cycles", "cycles");
    const wire::Id thread = maker.thread(maker.process(1), 1);
    const wire::Id outer = maker.stack({maker.named("[unknown process]")});
    maker.row(1, event, thread, outer, 2, 20);
    maker.row(1, event, thread, maker.stack({maker.named("[unknown process]"), maker.named("sys_read")}), 3, 30);
    maker.row(1, event, thread, maker.stack({maker.named("[no stack]")}), 4, 40);
    maker.row(1, event, thread, maker.stack({maker.named("main")}), 5, 50);
    Store store;
    REQUIRE(store.apply(maker.take()));
    CHECK(unresolved(store, {}) == Weight{6, 60});
}

TEST_CASE("incomplete call chains count once, by precedence, with the module where most of them stop") {
    BatchMaker maker;
    const wire::Id event = maker.event("cycles", "cycles");
    const wire::Id thread = maker.thread(maker.process(1), 1);
    const wire::Id a = maker.module("/lib/a.so"), b = maker.module("/lib/b.so");
    const auto row = [&](std::vector<wire::Id> outermost_first, std::uint32_t count) {
        maker.row(1, event, thread, maker.stack(outermost_first), count, count * 10);
    };
    const wire::Id incomplete = maker.named("[incomplete]"), skipped = maker.named("[caller missing]");
    row({maker.named("main", a), maker.named("work", a)}, 100);
    row({incomplete, maker.named("f", a), maker.named("g", b)}, 1);
    row({incomplete, maker.named("h", b)}, 4);
    row({maker.named("[truncated]"), maker.named("deep", a)}, 8);
    row({maker.named("main", a), skipped, maker.named("k", a), maker.named("l", b)}, 2);
    row({incomplete, maker.named("f", a), skipped, maker.named("m", b)}, 16);
    row({maker.named("[not sampled: short-lived threads]")}, 64);
    // A function with this name is not a marker.
    row({maker.named("[incomplete]", a), maker.named("f", a)}, 32);
    Store store;
    REQUIRE(store.apply(maker.take()));
    const MissingCallers missing = missing_callers(store, {});
    CHECK(missing.incomplete == Weight{21, 210});
    CHECK(missing.truncated == Weight{8, 80});
    CHECK(missing.skipped == Weight{2, 20});
    CHECK(missing.unsampled == Weight{64, 640});
    CHECK(store.string(missing.module) == "a.so");
    const MissingCallers none = missing_callers(store, {.start_ns = 1'000'000'000});
    CHECK(none.incomplete == Weight{});
    CHECK(none.module == 0);
}

TEST_CASE("a histogram divides the range evenly") {
    const Scene scene;
    const Filter filter{.event = scene.cycles, .start_ns = 10'000'000, .end_ns = 60'000'000};
    CHECK(histogram(scene.store, filter, 5) == std::vector<Weight>{{3, 30}, {2, 50}, {0, 0}, {0, 0}, {4, 7}});
    CHECK(histogram(scene.store, filter, 2) == std::vector<Weight>{{5, 80}, {4, 7}});
    CHECK(histogram(scene.store, {.event = scene.cycles}, 1) == std::vector<Weight>{{9, 87}});
    CHECK(histogram(scene.store, filter, 0).empty());
    CHECK(histogram(scene.store, {.start_ns = 5, .end_ns = 5}, 2) == std::vector<Weight>(2));
}

TEST_CASE("rows of batches that overlap in time or have other bucket widths are all found") {
    BatchMaker maker;
    const wire::Id event = maker.event("cycles", "cycles");
    const wire::Id thread = maker.thread(maker.process(1), 1);
    const wire::Id stack = maker.stack({maker.named("f")});
    Store store;
    maker.row(100'000, event, thread, stack, 1, 1);
    REQUIRE(store.apply(maker.take()));
    maker.row(99'990, event, thread, stack, 2, 2);   // a little earlier
    maker.row(10, event, thread, stack, 4, 4);       // much earlier: another chunk
    maker.row(200'000, event, thread, stack, 8, 8);  // much later
    REQUIRE(store.apply(maker.take()));
    maker.batch().bucket_ns = 1'000'000'000;
    maker.row(1'000, event, thread, stack, 16, 16);  // 1,000 s: between the others
    REQUIRE(store.apply(maker.take()));
    CHECK(call_tree(store, {}).total.samples == 31);
    CHECK(store.first_ns() == 100'000'000);
    CHECK(store.end_ns() == 2'000'010'000'000);
    CHECK(call_tree(store, {.start_ns = 999'900'000'000, .end_ns = 1'000'000'000'000}).total.samples == 2);
    CHECK(call_tree(store, {.start_ns = 1'000'000'000'000, .end_ns = 1'000'000'000'001}).total.samples == 17);
    CHECK(call_tree(store, {.end_ns = 999'900'000'000}).total.samples == 4);
    CHECK(call_tree(store, {.end_ns = 999'900'000'000}).newest_ns == 110'000'000);
}

}  // namespace flamewire::profile
