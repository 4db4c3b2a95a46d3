// Batches that no correct agent sends: they are refused, and no part of them is applied.
#include <catch2/catch.hpp>

#include <functional>
#include <limits>

#include "batch_maker.h"

namespace flamewire::profile {

// A valid batch with one entry of each kind.
static wire::Batch good_batch() {
    BatchMaker maker;
    const wire::Id event = maker.event("cycles", "cycles");
    const wire::Id app = maker.module("/bin/app", "id");
    const wire::Id thread = maker.thread(maker.process(5), 6);
    maker.row(1, event, thread, maker.stack({maker.location(app, 0x10), maker.named("leaf", app)}));
    wire::Batch batch = maker.take();
    batch.lifecycle = {{wire::LifecycleKind::comm, 1, thread, 1}};
    batch.losses = {{wire::LossReason::ring_full, 1, 1, 1, event, 0}};
    batch.symbols = {{app, 0x10, 4, 1}};
    return batch;
}

TEST_CASE("a reference to a missing entry is refused and changes nothing") {
    constexpr wire::Id missing = 1000;
    const std::vector<std::pair<const char*, std::function<void(wire::Batch&)>>> cases = {
        {"string base gap", [](wire::Batch& b) { b.string_base = 2; }},
        {"string base 0", [](wire::Batch& b) { b.string_base = 0; }},
        {"module base gap", [](wire::Batch& b) { b.module_base = 2; }},
        {"location base gap", [](wire::Batch& b) { b.location_base = 7; }},
        {"stack base at the end of ids", [](wire::Batch& b) { b.stack_base = std::numeric_limits<wire::Id>::max(); }},
        {"process base gap", [](wire::Batch& b) { b.process_base = 2; }},
        {"thread base gap", [](wire::Batch& b) { b.thread_base = 2; }},
        {"event base gap", [](wire::Batch& b) { b.event_base = 2; }},
        {"module path", [](wire::Batch& b) { b.modules[0].path = missing; }},
        {"location module", [](wire::Batch& b) { b.locations[0].module = missing; }},
        {"location name", [](wire::Batch& b) { b.locations[1].name = missing; }},
        {"location file", [](wire::Batch& b) { b.locations[1].file = missing; }},
        {"stack parent after child", [](wire::Batch& b) { b.stacks[0].parent = 2; }},
        {"stack its own parent", [](wire::Batch& b) { b.stacks[0].parent = 1; }},
        {"stack parent missing", [](wire::Batch& b) { b.stacks[1].parent = missing; }},
        {"stack without location", [](wire::Batch& b) { b.stacks[1].location = 0; }},
        {"stack location", [](wire::Batch& b) { b.stacks[1].location = missing; }},
        {"process comm", [](wire::Batch& b) { b.processes[0].comm = missing; }},
        {"process exe", [](wire::Batch& b) { b.processes[0].exe = missing; }},
        {"process command line", [](wire::Batch& b) { b.processes[0].command_line = missing; }},
        {"process cgroup", [](wire::Batch& b) { b.processes[0].cgroup = missing; }},
        {"process container", [](wire::Batch& b) { b.processes[0].container_id = missing; }},
        {"thread process", [](wire::Batch& b) { b.threads[0].process = missing; }},
        {"thread comm", [](wire::Batch& b) { b.threads[0].comm = missing; }},
        {"event name", [](wire::Batch& b) { b.events[0].name = missing; }},
        {"event without name", [](wire::Batch& b) { b.events[0].name = 0; }},
        {"event unit", [](wire::Batch& b) { b.events[0].unit = missing; }},
        {"row without event", [](wire::Batch& b) { b.rows[0].event = 0; }},
        {"row event", [](wire::Batch& b) { b.rows[0].event = missing; }},
        {"row thread", [](wire::Batch& b) { b.rows[0].thread = missing; }},
        {"row stack", [](wire::Batch& b) { b.rows[0].stack = missing; }},
        {"row time overflows",
         [](wire::Batch& b) { b.rows[0].bucket = std::numeric_limits<std::uint64_t>::max() / 10; }},
        {"bucket width 0", [](wire::Batch& b) { b.bucket_ns = 0; }},
        {"lifecycle thread", [](wire::Batch& b) { b.lifecycle[0].thread = missing; }},
        {"lifecycle comm", [](wire::Batch& b) { b.lifecycle[0].comm = missing; }},
        {"loss event", [](wire::Batch& b) { b.losses[0].event = missing; }},
        {"symbol module", [](wire::Batch& b) { b.symbols[0].module = missing; }},
        {"symbol without module", [](wire::Batch& b) { b.symbols[0].module = 0; }},
        {"symbol name", [](wire::Batch& b) { b.symbols[0].name = missing; }},
    };
    for (const auto& [name, spoil] : cases) {
        INFO(name);
        Store store;
        wire::Batch batch = good_batch();
        spoil(batch);
        const Result<bool> result = store.apply(batch);
        REQUIRE_FALSE(result);
        CHECK(result.error().code == ErrorCode::invalid);
        CHECK(store.version() == 0);
        CHECK(store.row_count() == 0);
        CHECK(store.modules().size() == 1);
        CHECK(store.threads().size() == 1);
        CHECK(store.events().size() == 1);
        CHECK(store.losses().empty());
        // The epoch continues as if the batch had not arrived.
        CHECK(store.apply(good_batch()));
        CHECK(store.row_count() == 1);
    }
}

TEST_CASE("a bad batch of a new epoch leaves the old epoch valid") {
    Store store;
    REQUIRE(store.apply(good_batch()));
    wire::Batch bad = good_batch();
    bad.epoch = 2;
    bad.rows[0].stack = 99;
    REQUIRE_FALSE(store.apply(bad));
    wire::Batch next;
    next.recording_id = good_batch().recording_id;
    next.seq = 2;
    next.rows = good_batch().rows;
    CHECK(store.apply(next));
    CHECK(store.row_count() == 2);
}

TEST_CASE("an ended epoch does not continue, and its ids are not valid later") {
    Store store;
    wire::Batch batch = good_batch();
    batch.epoch = 3;
    REQUIRE(store.apply(batch));
    batch.epoch = 2;
    CHECK_FALSE(store.apply(batch));
    wire::Batch next;
    next.recording_id = batch.recording_id;
    next.epoch = 4;
    next.rows = batch.rows;
    CHECK_FALSE(store.apply(next));
    CHECK(store.row_count() == 1);
}

TEST_CASE("stacks have a bounded depth, and the deepest permitted stack works everywhere") {
    BatchMaker maker;
    const wire::Id event = maker.event("cycles", "cycles");
    const wire::Id thread = maker.thread(maker.process(5), 6);
    const std::vector<wire::Id> path(65'535, maker.named("again"));
    maker.row(1, event, thread, maker.stack(path), 1, 1);
    Store store;
    REQUIRE(store.apply(maker.take()));
    const CallTree tree = call_tree(store, {});
    CHECK(tree.nodes.size() == 65'536);
    CHECK(tree.nodes.back().self.samples == 1);
    CHECK(show(store, functions(store, {})) == "again 1/1;");

    wire::Batch deeper = maker.take();
    deeper.stacks = {{65'535, 1}};
    CHECK_FALSE(store.apply(deeper));
}

TEST_CASE("an inconsistent reply of the symbolizer is not used") {
    Store store;
    REQUIRE(store.apply(good_batch()));
    const std::vector<PendingModule> pending = store.take_pending();
    REQUIRE(pending.size() == 1);
    const std::string before = show(store, call_tree(store, {}));
    store.set_frames(pending[0], symbol::Resolved{});
    store.set_frames(pending[0], symbol::Resolved{{0, 5}, {{9, 0, 0, false}}, {""}});
    store.set_frames({pending[0].module, {4711}, {{}}}, symbol::Resolved{{0, 1}, {{1, 0, 0, false}}, {"", "f"}});
    store.set_frames({pending[0].module, {0}, {{}}}, symbol::Resolved{{0, 1}, {{1, 0, 0, false}}, {"", "f"}});
    CHECK(show(store, call_tree(store, {})) == before);
}

}  // namespace flamewire::profile
