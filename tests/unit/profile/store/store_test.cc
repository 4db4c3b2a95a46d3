// Tables and epochs: which entries are the same again, and which are not.
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <cstring>
#include <set>

#include "../batch_maker.h"
#include "profile/store/id_index.h"

namespace flamewire::profile {

TEST_CASE("texts with a chosen word in common have different hashes") {
    // With known factors, one word makes the product 0 and erases everything before it.
    for (const std::uint64_t word : {0x9e3779b97f4a7c15U, 0xe7037ed1a0b428dbU, 0x0UL, ~0x0UL}) {
        std::string chosen(sizeof word, '\0');
        std::memcpy(chosen.data(), &word, sizeof word);
        std::set<std::uint64_t> hashes;
        for (int i = 0; i < 1'000; ++i) hashes.insert(hash_text(fmt::format("{:08}", i) + chosen + "end"));
        CHECK(hashes.size() == 1'000);
    }
}

TEST_CASE("an empty store has empty answers") {
    const Store store;
    CHECK(store.row_count() == 0);
    CHECK(store.first_ns() == 0);
    CHECK(store.end_ns() == 0);
    CHECK(store.total(0) == Weight{});
    CHECK(store.total(99) == Weight{});
    CHECK(store.string(0).empty());
    CHECK(store.string(12345).empty());
    CHECK(store.coverage().empty());
    CHECK(show(store, call_tree(store, {})) == "root 0/0\n");
    CHECK(functions(store, {}).empty());
    CHECK(thread_summary(store, {}).empty());
    CHECK(line_heat(store, {}, "a.cc").empty());
    CHECK(source_files(store, {}).empty());
    CHECK(unresolved(store, {}) == Weight{});
    CHECK(histogram(store, {}, 3) == std::vector<Weight>(3));
}

TEST_CASE("a batch becomes rows, totals and a time range") {
    BatchMaker maker;
    const wire::Id event = maker.event("cycles", "cycles", 1000);
    const wire::Id thread = maker.thread(maker.process(10), 11, "worker");
    const wire::Id stack = maker.stack({maker.named("main")});
    maker.row(100, event, thread, stack, 2, 2500);
    maker.row(103, event, thread, stack, 1, 900);
    Store store;
    CHECK(store.apply(maker.take()).value());
    CHECK(store.row_count() == 2);
    CHECK(store.first_ns() == 1'000'000'000);
    CHECK(store.end_ns() == 1'040'000'000);
    CHECK(store.total(1) == Weight{3, 3400});
    CHECK(store.total(0) == Weight{3, 0});
    REQUIRE(store.events().size() == 2);
    CHECK(store.events()[1].name == "cycles");
    CHECK(store.events()[1].period == 1000);
    REQUIRE(store.threads().size() == 2);
    CHECK(store.threads()[1].pid == 10);
    CHECK(store.threads()[1].tid == 11);
    CHECK(store.threads()[1].comm == "worker");
    CHECK(store.version() == 1);
    CHECK_FALSE(store.apply(maker.take()).value());  // it is empty
    CHECK(store.version() == 1);
}

TEST_CASE("counts and weights that do not fit the columns are kept exactly") {
    BatchMaker maker;
    const wire::Id event = maker.event("off-cpu", "ns");
    const wire::Id thread = maker.thread(maker.process(1), 1);
    const wire::Id stack = maker.stack({maker.named("wait")});
    maker.row(1, event, thread, stack, 65'534, 4'294'967'295U);  // the largest that fit
    maker.row(2, event, thread, stack, 65'535, 5);
    maker.row(3, event, thread, stack, 1, 4'294'967'296U);
    maker.row(4, event, thread, stack, 4'294'967'295U, 1'000'000'000'000'000U);
    Store store;
    REQUIRE(store.apply(maker.take()));
    CHECK(call_tree(store, {.end_ns = 20'000'000}).total == Weight{65'534, 4'294'967'295U});
    CHECK(call_tree(store, {.start_ns = 20'000'000, .end_ns = 30'000'000}).total == Weight{65'535, 5});
    CHECK(call_tree(store, {.start_ns = 30'000'000, .end_ns = 40'000'000}).total == Weight{1, 4'294'967'296U});
    CHECK(call_tree(store, {.start_ns = 40'000'000}).total == Weight{4'294'967'295U, 1'000'000'000'000'000U});
}

static void add_epoch(BatchMaker& maker, std::uint64_t bucket) {
    // In the second epoch, the tables are filled in another order, so the ids differ.
    const bool first = maker.batch().epoch == 1;
    if (!first) maker.string("something else");
    const wire::Id event = maker.event("cycles", "cycles");
    if (!first) maker.module("/other", "other-id");
    const wire::Id app = maker.module(first ? "/usr/bin/app" : "/renamed/app", "id-1");
    if (!first) maker.location(app, 0x999);
    const wire::Id main = maker.location(app, 0x100, wire::location_flag::return_address);
    const wire::Id leaf = maker.location(app, 0x200);
    const wire::Id thread = maker.thread(maker.process(5, 77), 6, first ? "old" : "new");
    maker.row(bucket, event, thread, maker.stack({main, leaf}), 1, 10);
}

TEST_CASE("a new epoch maps the same things to the same ids") {
    BatchMaker maker;
    Store store;
    add_epoch(maker, 1);
    REQUIRE(store.apply(maker.take_and_end_epoch()));
    add_epoch(maker, 2);
    REQUIRE(store.apply(maker.take()));

    CHECK(store.modules().size() == 3);  // reserved, app, other: the build-id matters, not the path
    CHECK(store.modules()[1].name == "app");
    CHECK(store.processes().size() == 2);
    CHECK(store.threads().size() == 2);
    CHECK(store.threads()[1].comm == "new");
    CHECK(store.events().size() == 2);
    CHECK(store.total(1) == Weight{2, 20});
    CHECK(show(store, call_tree(store, {})) ==
          "root 0/2\n"
          "  ?[app+0x100] 0/2\n"
          "    ?[app+0x200] 2/2\n");
}

TEST_CASE("modules without build-id are distinguished by path, device, inode, size and mtime") {
    const wire::Module file{wire::ModuleKind::file, 1, "", 8, 100, 4096, 5};
    std::vector<wire::Module> others(5, file);
    others[0].path = 2;
    others[1].device = 9;
    others[2].inode = 101;
    others[3].size = 4097;
    others[4].mtime_ns = 6;
    for (const wire::Module& other : others) {
        BatchMaker maker;
        maker.string("/lib/a.so");
        maker.string("/lib/b.so");
        maker.add(file);
        maker.add(other);
        maker.add(file);
        Store store;
        REQUIRE(store.apply(maker.take()));
        CHECK(store.modules().size() == 3);
    }
}

TEST_CASE("processes are (pid, start time, exec generation), threads (process, tid)") {
    BatchMaker maker;
    const wire::Id first = maker.process(5, 100, 0, "shell");
    const wire::Id after_exec = maker.process(5, 100, 1, "ls");
    const wire::Id reused = maker.process(5, 999, 0, "other");
    const wire::Id again = maker.process(5, 100, 0, "");
    const wire::Id event = maker.event("cycles", "cycles");
    for (const wire::Id process : {first, after_exec, reused, again})
        maker.row(1, event, maker.thread(process, 5, process == again ? "" : "main"), maker.stack({maker.named("f")}));
    Store store;
    REQUIRE(store.apply(maker.take()));
    REQUIRE(store.processes().size() == 4);
    CHECK(store.processes()[1].comm == "shell");
    CHECK(store.processes()[2].comm == "ls");
    CHECK(store.threads().size() == 4);
    const std::vector<ThreadRow> rows = thread_summary(store, {});
    REQUIRE(rows.size() == 3);
    CHECK(rows[0].thread == 1);
    CHECK(rows[0].weight.samples == 2);
}

TEST_CASE("known entries that are repeated are the same entries") {
    BatchMaker maker;
    const wire::Id event = maker.event("cycles", "cycles");
    const wire::Id thread = maker.thread(maker.process(5), 6);
    maker.row(1, event, thread, maker.stack({maker.named("main"), maker.named("leaf")}));
    const wire::Batch first = maker.take();
    Store store;
    REQUIRE(store.apply(first));
    // The same tables again, and one more stack node.
    wire::Batch second = first;
    second.stacks.push_back({1, 2});
    second.stacks.push_back({3, 2});
    second.rows[0].stack = 4;
    REQUIRE(store.apply(second));
    CHECK(store.threads().size() == 2);
    CHECK(store.total(1).samples == 2);
    CHECK(show(store, call_tree(store, {})) ==
          "root 0/2\n"
          "  main 0/2\n"
          "    leaf 1/2\n"
          "      leaf 1/1\n");
}

TEST_CASE("comm changes, losses, notices and the agent's state are kept") {
    BatchMaker maker;
    const wire::Id event = maker.event("cycles", "cycles");
    const wire::Id process = maker.process(5, 1, 0, "sh");
    const wire::Id main = maker.thread(process, 5, "sh");
    const wire::Id worker = maker.thread(process, 6, "sh");
    wire::Batch batch = maker.take();
    batch.strings.insert(batch.strings.end(), {"renamed", "pool-1", "ignored"});
    const wire::Id renamed = static_cast<wire::Id>(batch.strings.size()) - 2;
    batch.lifecycle = {{wire::LifecycleKind::comm, 1, worker, renamed + 1},
                       {wire::LifecycleKind::exec, 2, main, renamed},
                       {wire::LifecycleKind::exit, 3, main, renamed + 2}};
    batch.losses = {{wire::LossReason::ring_full, 3, 50, 60, event, 1},
                    {wire::LossReason::ring_full, 4, 40, 45, event, 2},
                    {wire::LossReason::throttled, 1, 0, 0, 0, 0}};
    batch.notices = {{"rate-clamped", "text", "remedy"}, {"rate-clamped", "text", "remedy"}};
    batch.agent = wire::AgentStats{.cpu_ns = 12};
    batch.recording.emplace().target = "pid 5";
    batch.end = wire::End{"stopped", 0};
    Store store;
    CHECK(store.apply(batch).value());
    CHECK(store.threads()[1].comm == "renamed");
    CHECK(store.processes()[1].comm == "renamed");
    CHECK(store.threads()[2].comm == "pool-1");
    CHECK(store.threads()[1].ended_ns == 3);
    CHECK(store.threads()[2].ended_ns == 0);
    REQUIRE(store.losses().size() == 2);
    CHECK(store.losses()[0].count == 7);
    CHECK(store.losses()[0].first_ns == 40);
    CHECK(store.losses()[0].last_ns == 60);
    CHECK_FALSE(store.losses()[0].by_store);
    CHECK(store.losses()[1].reason == wire::LossReason::throttled);
    CHECK(store.notices().size() == 1);
    CHECK(store.agent_stats()->cpu_ns == 12);
    CHECK(store.recording()->target == "pid 5");
    CHECK(store.end()->reason == "stopped");
}

TEST_CASE("the kernel's modules have the boot id of the recording") {
    BatchMaker maker;
    maker.module("[kernel]", "kernel-id", wire::ModuleKind::kernel);
    maker.module("/bin/app", "app-id");
    maker.batch().recording.emplace().boot_id = "boot-1";
    Store store;
    REQUIRE(store.apply(maker.take()));
    CHECK(store.modules()[1].identity.boot_id == "boot-1");
    CHECK(store.modules()[1].name == "[kernel]");
    CHECK(store.modules()[2].identity.boot_id.empty());
}

static wire::ProcessUnwind unwind_of(wire::Id process, std::uint64_t samples) {
    wire::ProcessUnwind unwind;
    unwind.process = process;
    unwind.mode = wire::StackMode::hybrid;
    unwind.why = "measured";
    unwind.samples = unwind.whole = samples;
    return unwind;
}

TEST_CASE("a process has its newest unwind entry, whatever the epoch") {
    BatchMaker maker;
    const wire::Id first = maker.process(10), second = maker.process(20);
    maker.batch().unwinds = {unwind_of(second, 5), unwind_of(first, 7), unwind_of(second, 6)};
    Store store;
    CHECK(store.apply(maker.take_and_end_epoch()).value());
    REQUIRE(store.processes().size() == 3);
    CHECK(store.processes()[1].unwind->samples == 7);
    CHECK(store.processes()[2].unwind->samples == 6);

    // The same processes with other ids. The text has a bounded length.
    const wire::Id again = maker.process(20);
    REQUIRE(again == 1);
    maker.batch().unwinds = {unwind_of(again, 9)};
    maker.batch().unwinds[0].why = std::string(100'000, 'w');
    CHECK(store.apply(maker.take()).value());
    CHECK(store.processes()[1].unwind->samples == 7);
    CHECK(store.processes()[2].unwind->samples == 9);
    CHECK(store.processes()[2].unwind->mode == wire::StackMode::hybrid);
    CHECK(store.processes()[2].unwind->why.size() == 500);

    for (const wire::Id unknown : {0U, 2U}) {
        maker.batch().unwinds = {unwind_of(again, 100), unwind_of(unknown, 1)};
        CHECK_FALSE(store.apply(maker.take()));
        CHECK(store.processes()[2].unwind->samples == 9);
    }
}

TEST_CASE("joined frames are the same functions as frames that were read") {
    using wire::location_flag::joined;
    using wire::location_flag::return_address;
    BatchMaker maker;
    const wire::Id event = maker.event("cycles", "cycles");
    const wire::Id thread = maker.thread(maker.process(1), 1);
    const wire::Id module = maker.module("/bin/app", "id");
    const wire::Id leaf = maker.location(module, 0x300);
    const wire::Id read = maker.location(module, 0x101, return_address);
    const wire::Id joined_frame = maker.location(module, 0x101, return_address | joined);
    REQUIRE(read != joined_frame);
    maker.row(1, event, thread, maker.stack({read, leaf}), 2);
    maker.row(1, event, thread, maker.stack({joined_frame, leaf}), 3);
    Store store;
    REQUIRE(store.apply(maker.take()));
    CHECK(symbolize(store, {{0x100, {{"main", "a.cc", 1}}}, {0x300, {{"work", "a.cc", 2}}}}) == 3);
    CHECK(show(store, call_tree(store, {})) == "root 0/5\n  main 0/5\n    work 5/5\n");
    CHECK(show(store, functions(store, {})) == "work 5/5;main 0/5;");
}

TEST_CASE("a store with full tables shows what it has and counts what arrives") {
    BatchMaker maker;
    const wire::Id event = maker.event("cycles", "cycles");
    const wire::Id thread = maker.thread(maker.process(1), 1);
    maker.row(1, event, thread, maker.stack({maker.named("main")}), 2);
    Store store({.max_table_bytes = 1});
    REQUIRE(store.apply(maker.take()));
    CHECK(store.tables_full());
    const std::size_t bytes = store.memory_bytes();
    // New names, unknown ids, another epoch: nothing is applied, everything is counted.
    maker.row(3, event, thread, maker.stack({maker.named("other")}), 4);
    maker.batch().losses = {{wire::LossReason::ring_full, 5, 1, 1, event, 0}};
    REQUIRE(store.apply(maker.take_and_end_epoch()));
    maker.batch().rows = {{7, 1, 77, 777, 0, 8, 8}};
    maker.batch().bucket_ns = 10'000'000;
    maker.batch().end = wire::End{"stopped", 0};
    REQUIRE(store.apply(maker.take()));
    CHECK(store.total(0).samples == 2);
    CHECK(show(store, call_tree(store, {})) == "root 0/2\n  main 2/2\n");
    std::uint64_t counted = 0, reported = 0;
    for (const LossTotal& loss : store.losses()) (loss.by_store ? counted : reported) += loss.count;
    CHECK(counted == 12);
    CHECK(reported == 5);
    CHECK(store.end()->reason == "stopped");
    CHECK(store.memory_bytes() < bytes + 4096);
}

}  // namespace flamewire::profile
