// Trees in shapes that the store does not keep, counted by hand.
#include "profile/query/shape.h"

#include <catch2/catch.hpp>

#include "../batch_maker.h"

namespace flamewire::profile {

// main;fact;fact;fact 4 | main;work;fact 2 | main;work;leaf 3 | main;work 1, all of one thread and event.
struct Recursive {
    BatchMaker maker;
    Store store;

    Recursive() {
        const wire::Id event = maker.event("cycles", "cycles");
        const wire::Id thread = maker.thread(maker.process(10), 10, "t");
        const wire::Id main = maker.named("main", 0, 0, "a.cc", 1);
        const wire::Id work = maker.named("work", 0, 0, "a.cc", 20);
        const wire::Id other = maker.named("work", 0, 0, "a.cc", 25);
        const wire::Id fact = maker.named("fact", 0, 0, "a.cc", 30);
        const wire::Id leaf = maker.named("leaf", 0, 0, "b.cc", 40);
        maker.row(1, event, thread, maker.stack({main, fact, fact, fact}), 4, 40);
        maker.row(1, event, thread, maker.stack({main, work, fact}), 2, 20);
        maker.row(1, event, thread, maker.stack({main, other, leaf}), 3, 30);
        maker.row(1, event, thread, maker.stack({main, work}), 1, 10);
        REQUIRE(store.apply(maker.take()));
    }
};

TEST_CASE("an inverted tree begins with the innermost frames") {
    const Recursive scene;
    CHECK(show(scene.store, call_tree(scene.store, {}, {.inverted = true})) ==
          "root 0/10\n"
          "  fact 0/6\n"
          "    fact 0/4\n"
          "      fact 0/4\n"
          "        main 4/4\n"
          "    work 0/2\n"
          "      main 2/2\n"
          "  leaf 0/3\n"
          "    work 0/3\n"
          "      main 3/3\n"
          "  work 0/1\n"
          "    main 1/1\n");
    CHECK(show(scene.store, call_tree(scene.store, {}, {.path = {"leaf", "work"}, .inverted = true})) ==
          "work 0/3\n"
          "  main 3/3\n");
}

TEST_CASE("direct recursion collapses into one frame, in both directions") {
    const Recursive scene;
    CHECK(show(scene.store, call_tree(scene.store, {}, {.collapse_recursion = true})) ==
          "root 0/10\n"
          "  main 0/10\n"
          "    work 1/6\n"
          "      leaf 3/3\n"
          "      fact 2/2\n"
          "    fact 4/4\n");
    CHECK(show(scene.store, call_tree(scene.store, {}, {.inverted = true, .collapse_recursion = true})) ==
          "root 0/10\n"
          "  fact 0/6\n"
          "    main 4/4\n"
          "    work 0/2\n"
          "      main 2/2\n"
          "  leaf 0/3\n"
          "    work 0/3\n"
          "      main 3/3\n"
          "  work 0/1\n"
          "    main 1/1\n");
}

TEST_CASE("merged by line, two lines of a function are two nodes, and a path distinguishes them") {
    const Recursive scene;
    const CallTree tree = call_tree(scene.store, {}, {.merge = MergeBy::line});
    CHECK(show(scene.store, tree) ==
          "root 0/10\n"
          "  main 0/10\n"
          "    fact 0/4\n"
          "      fact 0/4\n"
          "        fact 4/4\n"
          "    work 1/3\n"
          "      fact 2/2\n"
          "    work 0/3\n"
          "      leaf 3/3\n");
    CHECK(tree.functions[tree.nodes[3].function].line == 20);
    CHECK(tree.functions[tree.nodes[4].function].line == 25);
    CHECK(tree.addresses.empty());
    const auto zoomed = [&](const std::string& entry) {
        return show(scene.store, call_tree(scene.store, {}, {.path = {"main", entry}, .merge = MergeBy::line}));
    };
    const std::string none =
        "\x1e"
        "0"
        "\x1e";
    CHECK(zoomed("work" + none +
                 "\x1e"
                 "25") == "work 0/3\n  leaf 3/3\n");
    CHECK(zoomed("work" + none +
                 "\x1e"
                 "20") == "work 1/3\n  fact 2/2\n");
}

TEST_CASE("merged by address, places are distinguished by their address") {
    BatchMaker maker;
    const wire::Id event = maker.event("cycles", "cycles");
    const wire::Id thread = maker.thread(maker.process(10), 10, "t");
    const wire::Id module = maker.module("/bin/x", "x");
    maker.row(1, event, thread, maker.stack({maker.location(module, 0x1000)}), 1);
    maker.row(1, event, thread, maker.stack({maker.location(module, 0x1008)}), 5);
    Store store;
    REQUIRE(store.apply(maker.take()));
    const CallTree tree = call_tree(store, {}, {.merge = MergeBy::address});
    REQUIRE(tree.nodes.size() == 3);
    CHECK(tree.nodes[1].total.samples == 5);
    CHECK(tree.addresses[tree.nodes[1].function] == 0x1008);
    CHECK(tree.addresses[tree.nodes[2].function] == 0x1000);
    CHECK(tree.addresses[0] == 0);
}

TEST_CASE("hidden subtrees remove their weight") {
    const Recursive scene;
    CHECK(show(scene.store, call_tree(scene.store, {}, {.hidden = {{"main", "fact"}, {"main", "no such name"}}})) ==
          "root 0/6\n"
          "  main 0/6\n"
          "    work 1/6\n"
          "      leaf 3/3\n"
          "      fact 2/2\n");
    CHECK(show(scene.store, call_tree(scene.store, {}, {.hidden = {{"fact"}, {"leaf", "work"}}, .inverted = true})) ==
          "root 0/1\n"
          "  work 0/1\n"
          "    main 1/1\n");
    // An empty filter hides nothing, and everything can be hidden.
    CHECK(call_tree(scene.store, {}, {.hidden = {{}}}).total.samples == 10);
    CHECK(call_tree(scene.store, {}, {.hidden = {{"main"}}}).total == Weight{});
}

TEST_CASE("callers and callees count a stack once, by the outermost frame of the function") {
    const Recursive scene;
    const Sandwich sides = sandwich(scene.store, {}, "fact", "");
    CHECK(sides.self == Weight{6, 60});
    CHECK(sides.total == Weight{6, 60});
    CHECK(sides.all == Weight{10, 100});
    CHECK(show(scene.store, sides.callers) ==
          "fact 0/6\n"
          "  main 4/4\n"
          "  work 0/2\n"
          "    main 2/2\n");
    CHECK(show(scene.store, sides.callees) ==
          "fact 2/6\n"
          "  fact 0/4\n"
          "    fact 4/4\n");
    const auto list = [&](const std::vector<Sandwich::Neighbour>& neighbours) {
        std::string text;
        for (const auto& [function, weight] : neighbours)
            text += std::string(scene.store.string(function.name)) + " " + std::to_string(weight.samples) + ";";
        return text;
    };
    CHECK(list(sides.direct_callers) == "main 4;fact 4;work 2;");
    CHECK(list(sides.direct_callees) == "fact 4;");
    const Sandwich work = sandwich(scene.store, {}, "work", "");
    CHECK(work.self.samples == 1);
    CHECK(work.total.samples == 6);
    CHECK(list(work.direct_callers) == "main 6;");
    CHECK(list(work.direct_callees) == "leaf 3;fact 2;");
    CHECK(show(scene.store, sandwich(scene.store, {}, "fact", "", {.collapse_recursion = true}).callees) ==
          "fact 6/6\n");
    CHECK(sandwich(scene.store, {}, "no such name", "").total == Weight{});
    CHECK(sandwich(scene.store, {}, "fact", "no such module").total == Weight{});
}

TEST_CASE("a tree that would grow too large keeps its weight and marks where it is truncated") {
    const Recursive scene;
    const Store::Tables& tables = scene.store.tables();
    ShapeBuilder builder(tables, {}, 2);
    const TouchedTree stacks = touched_stacks(tables, select(tables, {}));
    const auto frame_of = [&](std::uint32_t node) { return tables.stacks.label(stacks.node[node]); };
    const LocationId outer = frame_of(1), inner = frame_of(2);
    auto at = builder.step({}, outer, tables.frames_of(outer).front());
    builder.add(at, {3, 30});
    at = builder.step(at, inner, tables.frames_of(inner).front());
    CHECK(at.cut);
    at = builder.step(at, outer, tables.frames_of(outer).front());
    builder.add(at, {4, 40});
    const CallTree tree = to_call_tree(std::move(builder).finish(0), 0, {});
    CHECK(show(scene.store, tree) == "root 0/7\n  main 3/7 -1\n");
}

}  // namespace flamewire::profile
