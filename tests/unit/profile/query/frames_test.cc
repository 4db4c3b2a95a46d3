// From addresses to frames: placeholders, wire symbols, and replies of the symbolizer that are early, late, better or
// worse.
#include <catch2/catch.hpp>

#include <algorithm>

#include "../batch_maker.h"

namespace flamewire::profile {

using wire::location_flag::kernel_mode;
using wire::location_flag::return_address;

// One sample in main -> work -> leaf of /usr/bin/app.
static Store three_frames(BatchMaker& maker) {
    const wire::Id event = maker.event("cycles", "cycles");
    const wire::Id app = maker.module("/usr/bin/app", "id");
    const wire::Id thread = maker.thread(maker.process(5), 6);
    maker.row(1, event, thread,
              maker.stack({maker.location(app, 0x101, return_address), maker.location(app, 0x201, return_address),
                           maker.location(app, 0x300)}));
    Store store;
    REQUIRE(store.apply(maker.take()));
    return store;
}

TEST_CASE("an address without a symbol is shown as an address") {
    BatchMaker maker;
    const wire::Id event = maker.event("cycles", "cycles");
    const wire::Id thread = maker.thread(maker.process(5), 6);
    const wire::Id app = maker.module("/usr/bin/app", "id");
    const wire::Id kernel = maker.module("[kernel]", "kernel-id", wire::ModuleKind::kernel);
    maker.row(
        1, event, thread,
        maker.stack({maker.location(app, 0x1234), maker.location(0, 0x7f0012345678), maker.location(kernel, 0xabc)}));
    Store store;
    REQUIRE(store.apply(maker.take()));
    const std::string unknown =
        "root 0/1\n"
        "  ?[app+0x1234] 0/1\n"
        "    ?[0x7f0012345678] 0/1\n"
        "      ?[kernel+0xabc] 1/1\n";
    CHECK(show(store, call_tree(store, {})) == unknown);
    CHECK(unresolved(store, {}).samples == 1);
    CHECK(store.unresolved_kernel_locations() == 0);  // not requested yet
    CHECK(symbolize(store, {}) == 2);                 // an address without a module is never requested
    CHECK(show(store, call_tree(store, {})) == unknown);
    CHECK(store.unresolved_kernel_locations() == 1);
}

TEST_CASE("frames that arrive late rename and expand the tree") {
    BatchMaker maker;
    Store store = three_frames(maker);
    const std::uint64_t version = store.version();
    CHECK(symbolize(store, {{0x100, {{"main", "main.cc", 10, false}}},
                            {0x200, {{"inner", "work.h", 5, true}, {"work", "work.cc", 20, false}}},
                            {0x300, {{"leaf", "work.cc", 33, false}}}}) == 3);
    CHECK(store.version() > version);
    CHECK(show(store, call_tree(store, {})) ==
          "root 0/1\n"
          "  main 0/1\n"
          "    work 0/1\n"
          "      ~inner 0/1\n"
          "        leaf 1/1\n");
    CHECK(unresolved(store, {}) == Weight{});
    CHECK(symbolize(store, {}) == 0);  // each location is handed out once
    const CallTree tree = call_tree(store, {});
    CHECK(store.string(tree.functions[1].module) == "app");
    CHECK(store.string(tree.functions[1].file) == "main.cc");
    CHECK(tree.functions[1].line == 10);
}

TEST_CASE("better symbols replace worse ones, and later batches use them") {
    BatchMaker maker;
    Store store = three_frames(maker);
    symbolize(store, {{0x100, {{"_start", "", 0, false}}}, {0x300, {{"leaf", "", 0, false}}}});
    CHECK(show(store, call_tree(store, {})) ==
          "root 0/1\n"
          "  _start 0/1\n"
          "    ?[app+0x201] 0/1\n"
          "      leaf 1/1\n");
    store.forget_frames({});
    // The old frames stay until the reply arrives.
    CHECK(show(store, functions(store, {})) == "leaf 1/1;[app+0x201] 0/1;_start 0/1;");
    CHECK(symbolize(store, {{0x100, {{"main", "main.cc", 10, false}}},
                            {0x200, {{"work", "work.cc", 20, false}}},
                            {0x300, {{"leaf_inlined", "leaf.h", 1, true}, {"leaf", "leaf.cc", 2, false}}}}) == 3);
    maker.row(2, 1, 1, 3);
    REQUIRE(store.apply(maker.take()));
    CHECK(show(store, call_tree(store, {})) ==
          "root 0/2\n"
          "  main 0/2\n"
          "    work 0/2\n"
          "      leaf 0/2\n"
          "        ~leaf_inlined 2/2\n");
}

TEST_CASE("symbols that disappear leave the address, not the old name") {
    BatchMaker maker;
    Store store = three_frames(maker);
    symbolize(store, {{0x300, {{"leaf", "", 0, false}}}});
    store.forget_frames(std::vector<ModuleId>{1});
    symbolize(store, {});
    CHECK(show(store, functions(store, {})) == "[app+0x300] 1/1;[app+0x101] 0/1;[app+0x201] 0/1;");
}

TEST_CASE("forget_frames of one module leaves the others") {
    BatchMaker maker;
    const wire::Id app = maker.module("/app", "a");
    const wire::Id lib = maker.module("/lib", "b");
    maker.stack({maker.location(app, 1), maker.location(lib, 2), maker.location(lib, 3)});
    Store store;
    REQUIRE(store.apply(maker.take()));
    CHECK(store.pending_locations() == 3);
    CHECK(symbolize(store, {}) == 3);
    CHECK(store.pending_locations() == 0);
    store.forget_frames(std::vector<ModuleId>{2, 99});
    store.forget_frames(std::vector<ModuleId>{2});  // twice, but handed out once
    CHECK(store.pending_locations() == 2);
    const std::vector<PendingModule> pending = store.take_pending();
    REQUIRE(pending.size() == 1);
    CHECK(pending[0].module == 2);
    CHECK(pending[0].locations.size() == 2);
    CHECK(store.pending_locations() == 2);          // no reply yet
    store.forget_frames(std::vector<ModuleId>{2});  // the pending reply is outdated now
    store.set_frames(pending[0], answer(pending[0], {}));
    CHECK(store.pending_locations() == 2);
    CHECK(symbolize(store, {}) == 2);
    CHECK(store.pending_locations() == 0);
}

TEST_CASE("return addresses are looked up one byte before, other addresses as they are") {
    BatchMaker maker;
    const wire::Id event = maker.event("cycles", "cycles");
    const wire::Id thread = maker.thread(maker.process(5), 6);
    const wire::Id vdso = maker.module("[vdso]", "v", wire::ModuleKind::vdso);
    maker.row(1, event, thread, maker.stack({maker.location(vdso, 0x20, return_address), maker.location(vdso, 0x20)}));
    wire::Batch batch = maker.take();
    batch.strings.insert(batch.strings.end(), {"before", "after"});
    const auto before = static_cast<wire::Id>(batch.strings.size()) - 1;
    batch.symbols = {{vdso, 0x20, 0x10, before + 1}, {vdso, 0x10, 0x10, before}};
    Store store;
    REQUIRE(store.apply(batch));
    CHECK(show(store, call_tree(store, {})) ==
          "root 0/1\n"
          "  before 0/1\n"
          "    after 1/1\n");
}

TEST_CASE("wire symbols name kernel addresses, before or after the samples, until the symbolizer has better ones") {
    BatchMaker maker;
    const wire::Id event = maker.event("cycles", "cycles");
    const wire::Id thread = maker.thread(maker.process(5), 6);
    const wire::Id kernel = maker.module("[kernel]", "k", wire::ModuleKind::kernel);
    // Addresses are relative to _text modulo 2^64, so a module below _text has huge ones.
    const std::uint64_t below_text = 0 - std::uint64_t{0x1000};
    maker.row(1, event, thread,
              maker.stack({maker.location(kernel, 0x105, kernel_mode), maker.location(kernel, 0x205, kernel_mode),
                           maker.location(kernel, below_text + 4, kernel_mode)}));
    Store store;
    REQUIRE(store.apply(maker.take()));
    CHECK(symbolize(store, {}) == 3);
    CHECK(store.unresolved_kernel_locations() == 3);

    wire::Batch batch = maker.take();
    batch.strings = {"do_syscall_64", "nf_hook [nf_tables]"};
    batch.symbols = {{kernel, below_text, 0x1000, batch.string_base + 1}, {kernel, 0x100, 0x10, batch.string_base}};
    REQUIRE(store.apply(batch));
    CHECK(show(store, call_tree(store, {})) ==
          "root 0/1\n"
          "  do_syscall_64 0/1\n"
          "    ?[kernel+0x205] 0/1\n"
          "      nf_hook 1/1\n");
    CHECK(store.unresolved_kernel_locations() == 1);
    const CallTree tree = call_tree(store, {});
    CHECK(tree.functions[1].kind == FrameKind::kernel);
    CHECK(store.string(tree.functions[1].module) == "[kernel]");
    CHECK(store.string(tree.functions[3].module) == "nf_tables.ko");

    store.forget_frames({});
    symbolize(store, {{0x105, {{"do_syscall_64", "common.c", 80, false}}}});
    CHECK(show(store, functions(store, {})) == "nf_hook 1/1;[kernel+0x205] 0/1;do_syscall_64 0/1;");
    CHECK(source_files(store, {}).size() == 1);
}

TEST_CASE("symbols of size 0 extend to the next one, others end at their size") {
    BatchMaker maker;
    const wire::Id event = maker.event("cycles", "cycles");
    const wire::Id thread = maker.thread(maker.process(5), 6);
    const wire::Id kernel = maker.module("[kernel]", "k", wire::ModuleKind::kernel);
    for (const std::uint64_t address : {0x0fU, 0x10U, 0x1fU, 0x20U, 0x27U, 0x28U})
        maker.row(1, event, thread, maker.stack({maker.location(kernel, address)}));
    wire::Batch batch = maker.take();
    batch.strings.insert(batch.strings.end(), {"open_end", "sized"});
    const auto name = static_cast<wire::Id>(batch.strings.size()) - 1;
    batch.symbols = {{kernel, 0x10, 0, name}, {kernel, 0x20, 8, name + 1}};
    Store store;
    REQUIRE(store.apply(batch));
    CHECK(show(store, functions(store, {})) == "open_end 2/2;sized 2/2;[kernel+0xf] 1/1;[kernel+0x28] 1/1;");
}

TEST_CASE("name locations have the name from the wire, and the kind follows from module and flags") {
    BatchMaker maker;
    const wire::Id event = maker.event("cycles", "cycles");
    const wire::Id thread = maker.thread(maker.process(5), 6);
    const wire::Id jit = maker.module("[jit]", "", wire::ModuleKind::jit);
    maker.row(1, event, thread,
              maker.stack({maker.named("[truncated]"), maker.named("app::run", 0, 0, "app.js", 7),
                           maker.named("Interpreter::go", jit), maker.named("vfs_read [ext4]", 0, kernel_mode)}),
              1, 5);
    Store store;
    REQUIRE(store.apply(maker.take()));
    CHECK(store.take_pending().empty());
    const CallTree tree = call_tree(store, {});
    REQUIRE(tree.nodes.size() == 5);
    CHECK(store.string(tree.functions[1].name) == "[truncated]");
    CHECK(tree.functions[1].kind == FrameKind::user);
    CHECK(tree.functions[2].kind == FrameKind::user);
    CHECK(tree.functions[3].kind == FrameKind::jit);
    CHECK(tree.functions[4].kind == FrameKind::kernel);
    CHECK(store.string(tree.functions[4].name) == "vfs_read");
    CHECK(store.string(tree.functions[4].module) == "ext4.ko");
    const std::vector<LineRow> lines = line_heat(store, {}, "app.js");
    REQUIRE(lines.size() == 1);
    CHECK(lines[0].line == 7);
    CHECK(lines[0].self == Weight{});
    CHECK(lines[0].total == Weight{1, 5});
}

TEST_CASE("JIT code: an address gets the name that it had then, and modules without any name are listed") {
    BatchMaker maker;
    const wire::Id event = maker.event("cycles", "cycles");
    const wire::Id thread = maker.thread(maker.process(5), 6);
    const wire::Id node = maker.module("[jit] node 5", "", wire::ModuleKind::jit);
    const wire::Id other = maker.module("[jit] node 7", "", wire::ModuleKind::jit);
    const wire::Id app = maker.module("/bin/app");
    maker.row(1, event, thread, maker.stack({maker.location(app, 1), maker.location(node, 0x1008, return_address)}));
    maker.row(1, event, thread, maker.stack({maker.location(node, 0x1008)}));
    maker.row(1, event, thread, maker.stack({maker.location(other, 0x1008)}));
    Store store;
    REQUIRE(store.apply(maker.take()));
    CHECK(nameless_jit_modules(store) == std::vector<bool>{false, true, true, false});
    maker.row(2, event, thread, maker.stack({maker.named("f", node)}));
    wire::Batch named = maker.take();
    named.symbols = {{node, 0x1007, 1, named.string_base}};
    REQUIRE(store.apply(named));
    CHECK(nameless_jit_modules(store) == std::vector<bool>{false, false, true, false});
    // One name across all processes. The address next to it belongs to other code.
    CHECK(show(store, functions(store, {})) == "[jit+0x1008] 2/2;f 2/2;[app+0x1] 0/1;");
    CHECK(store.modules()[node].name == "[jit]");
}

TEST_CASE("an outdated reply for a location does not prevent a new request") {
    BatchMaker maker;
    Store store = three_frames(maker);
    const std::vector<PendingModule> old = store.take_pending();
    store.forget_frames({});  // symbols improved while the worker was busy
    store.set_frames(old[0], answer(old[0], {{0x300, {{"old_name", "", 0, false}}}}));
    CHECK(symbolize(store, {{0x300, {{"new_name", "", 0, false}}}}) == 3);
    CHECK(store.string(functions(store, {})[0].function.name) == "new_name");
}

TEST_CASE("many rounds of changing symbols do not accumulate unused nodes") {
    BatchMaker maker;
    const wire::Id event = maker.event("cycles", "cycles");
    const wire::Id thread = maker.thread(maker.process(5), 6);
    const wire::Id app = maker.module("/app", "a");
    for (std::uint64_t i = 0; i < 2'000; ++i)
        maker.row(1, event, thread, maker.stack({maker.location(app, 0x10'000 + i), maker.location(app, i)}));
    Store store;
    REQUIRE(store.apply(maker.take()));
    const auto known = [](bool inlined) {
        KnownFrames frames;
        for (std::uint64_t i = 0; i < 2'000; ++i) {
            frames[i] = {{"f" + std::to_string(i), "", 0, false}};
            if (inlined) frames[i].insert(frames[i].begin(), {"inner", "", 0, true});
        }
        return frames;
    };
    std::size_t bytes_early = 0;
    for (int round = 0; round < 60; ++round) {
        store.forget_frames({});
        symbolize(store, known(round % 2 == 0));
        if (round == 20) bytes_early = store.memory_bytes();
        CHECK(call_tree(store, {}).nodes.size() == (round % 2 == 0 ? 6'001U : 4'001U));
        CHECK(call_tree(store, {}).total.samples == 2'000);
    }
    CHECK(store.memory_bytes() < bytes_early * 2);
}

TEST_CASE("inlined functions never exceed the memory of the tables") {
    BatchMaker maker;
    const wire::Id event = maker.event("cycles", "cycles");
    const wire::Id thread = maker.thread(maker.process(5), 6);
    const wire::Id app = maker.module("/app", "a");
    constexpr std::uint64_t depth = 1'000;
    KnownFrames frames;
    std::vector<wire::Id> stack;
    for (std::uint64_t i = 0; i < depth; ++i) {
        stack.push_back(maker.location(app, 0x1000 + i));
        for (int inlined = 0; inlined < 200; ++inlined)
            frames[0x1000 + i].push_back({"inner" + std::to_string(inlined), "", 0, true});
        frames[0x1000 + i].push_back({"f" + std::to_string(i), "", 0, false});
    }
    maker.row(1, event, thread, maker.stack(stack));
    // A later stack gets the frames of addresses that already have some.
    const auto more = [&] {
        std::ranges::reverse(stack);
        maker.row(2, event, thread, maker.stack(stack));
        return maker.take();
    };
    constexpr std::size_t limit = std::size_t{4} << 20;
    for (const bool bounded : {false, true}) {
        BatchMaker again = maker;
        Store store({.max_table_bytes = bounded ? limit : std::size_t{1} << 30});
        REQUIRE(store.apply(maker.take()));
        CHECK(symbolize(store, frames) == depth);
        REQUIRE(store.apply(more()));
        CHECK(store.inlined_left_out() == bounded);
        const CallTree tree = call_tree(store, {});
        CHECK(tree.total.samples == 2);
        const std::size_t all = 1 + 2 * depth * 201;
        if (bounded) {
            CHECK(store.memory_bytes() < 2 * limit);
            CHECK(tree.nodes.size() < all / 2);
            CHECK(tree.nodes.size() > 2 * depth);
        } else {
            CHECK(store.memory_bytes() > 2 * limit);
            CHECK(tree.nodes.size() == all);
        }
        maker = again;
        std::ranges::reverse(stack);
    }
}

}  // namespace flamewire::profile
