// Export of perf.data, read again with the importer. tests/integration/test_formats.py lets perf read it.
#include "profile/formats/perf_data/perf_data_export.h"

#include <catch2/catch.hpp>

#include <cstring>

#include "batch_maker.h"
#include "imported.h"
#include "profile/formats/perf_data/embedded_symbols.h"

namespace flamewire::profile {
namespace {

std::string exported(const Store& store, const Filter& filter = {}, const perf_data::ExportOptions& options = {}) {
    const Result<std::string> file = perf_data::perf_data_file(store, filter, options);
    REQUIRE(file.has_value());
    return *file;
}

}  // namespace

TEST_CASE("perf.data: export and import give the same") {
    BatchMaker maker;
    const wire::Id cycles = maker.event("cycles", "cycles"), blocked = maker.event("off-cpu", "ns");
    const wire::Id process = maker.process(5), later = maker.process(5, 1, 1, "other");
    const wire::Id one = maker.thread(process, 6, "pool"), two = maker.thread(process, 5, "main"),
                   three = maker.thread(later, 5, "other");
    const wire::Id library = maker.module("/lib/liba.so", "0123456789abcdefghij"), other = maker.module("/bin/b"),
                   kernel = maker.module("[kernel.kallsyms]", "", wire::ModuleKind::kernel),
                   jit = maker.module("[jit]", "", wire::ModuleKind::jit);
    const wire::Id main = maker.named("main", library, 0, "main.c", 3),
                   line = maker.named("main", library, 0, "main.c", 4);
    const wire::Id same = maker.named("main", other);
    const wire::Id tiny = maker.named("tiny", library, wire::location_flag::inlined, "tiny.h", 9);
    const wire::Id module = maker.named("ext4_read [ext4]", kernel), code = maker.named("Lapp;run", jit);
    const wire::Id place = maker.location(library, 0x12345),
                   caller = maker.location(library, 0x2'0000, wire::location_flag::return_address),
                   text = maker.location(kernel, 0x40, wire::location_flag::kernel_mode),
                   nowhere = maker.location(0, 0x77);
    maker.row(100, cycles, one, maker.stack({main, tiny, module}), 3, 20);
    maker.row(100, cycles, two, maker.stack({line, code, text}), 1, 7);
    maker.row(150, cycles, two, maker.stack({same, caller, place}), 2, 9);
    maker.row(160, cycles, two, maker.stack({nowhere}), 1, 0);
    maker.row(170, cycles, two, 0, 1, 4);
    maker.row(300, cycles, three, maker.stack({same, caller, tiny}), 3, 30, 7);
    maker.row(200, blocked, two, maker.stack({main, tiny}), 1, 1000);
    wire::Loss loss;
    loss.reason = wire::LossReason::ring_full;
    loss.count = 12;
    loss.first_ns = loss.last_ns = 1'600'000'000;
    loss.event = cycles;
    maker.batch().losses.push_back(loss);
    Store store;
    REQUIRE(store.apply(maker.take()));
    const std::string file = exported(store, {}, {.started_ns = 1'700'000'000'000'000'000});
    const ImportedText again(file);
    CHECK(again.recognised == "perf.data");
    CHECK(again.problem.empty());
    CHECK(again.events() == "cycles/cycles off-cpu/ns ");
    for (const bool weights : {false, true})
        CHECK(again.lines({}, weights) == collapsed(store, {}, {.weights = weights}));
    CHECK(again.function("tiny")->kind == FrameKind::inlined);
    CHECK(again.function("tiny")->line == 9);
    CHECK(again.function("Lapp;run")->kind == FrameKind::jit);
    CHECK(again.module_of("ext4_read") == "ext4.ko");
    CHECK(again.function("[liba.so+0x12345]")->kind == FrameKind::unknown);
    CHECK(again.function("[kernel+0x40]")->kind == FrameKind::unknown);
    CHECK(again.store.modules()[again.store.tables().locations[0].module].name.empty());
    bool build_id = false;
    for (const Module& one_module : again.store.modules())
        build_id = build_id || one_module.identity.build_id == "0123456789abcdefghij";
    CHECK(build_id);
    REQUIRE(again.store.losses().size() == 1);
    CHECK(again.store.losses()[0].count == 12);
    CHECK(again.realtime == 1'700'000'000'000'000'000);
    // perf distinguishes equal names of several modules by their suffix.
    CHECK(file.find(std::string("main [b]\0", 9)) != std::string::npos);
    CHECK(file.find(std::string("main [liba.so]\0", 15)) != std::string::npos);
    CHECK(file.find(std::string("tiny\0", 5)) != std::string::npos);
    // One event and a part of the time.
    Filter filter;
    filter.event = 2;
    CHECK(ImportedText(exported(store, filter)).lines() == collapsed(store, filter));
    CHECK(ImportedText(exported(store, {.start_ns = 1'500'000'000, .end_ns = 1'700'000'000})).lines() ==
          "main;[0x77] 1\nmain;main;[liba.so+0x20000];[liba.so+0x12345] 2\n");
}

TEST_CASE("perf.data out: the record of a process start precedes its first sample") {
    BatchMaker maker;
    const wire::Id cycles = maker.event("cycles", "cycles");
    const wire::Id parent = maker.process(5), child = maker.process(7);
    maker.batch().processes.back().parent_pid = 5;
    maker.batch().processes.back().start_time_ns = 1'015'000'000;
    const wire::Id one = maker.thread(parent, 5, "main"), other = maker.thread(child, 8, "worker");
    maker.thread(child, 7, "child");
    maker.row(100, cycles, one, maker.stack({maker.named("main", 0)}));
    maker.row(101, cycles, other, maker.stack({maker.named("run", 0)}));
    maker.row(102, cycles, one, maker.stack({maker.named("main", 0)}));
    Store store;
    REQUIRE(store.apply(maker.take()));
    const std::string file = exported(store);
    const auto number = [&](std::size_t at, std::size_t size) {
        std::uint64_t value = 0;
        std::memcpy(&value, file.data() + at, size);
        return value;
    };
    // The data section is at 40 (perf.data-file-format.txt of Linux). FORK is 7 and SAMPLE 9 (perf_event.h).
    std::string order;
    for (std::size_t at = number(40, 8), end = at + number(48, 8); at < end; at += number(at + 6, 2)) {
        if (number(at, 4) == 7) order += 'f';
        if (number(at, 4) == 9) order += 's';
    }
    CHECK(order == "sfss");
}

TEST_CASE("perf.data out: many samples become one per row, deep stacks are truncated, an empty store is a file, too") {
    BatchMaker maker;
    const wire::Id event = maker.event("samples", "samples");
    const wire::Id thread = maker.thread(maker.process(1), 1);
    std::vector<wire::Id> deep;
    for (int i = 0; i < 10'000; ++i) deep.push_back(maker.named(i % 2 == 0 ? "even" : "odd"));
    maker.row(100, event, thread, maker.stack({maker.named("often")}), 5000, 5000);
    maker.row(100, event, thread, maker.stack(deep), 1, 1);
    Store store;
    REQUIRE(store.apply(maker.take()));
    const ImportedText all(exported(store));
    CHECK(all.lines().ends_with("app;often 5000\n"));
    const std::string cut = all.lines().substr(0, all.lines().find('\n'));
    CHECK(cut.starts_with("app;[truncated];even;odd;"));
    CHECK(std::ranges::count(cut, ';') == 4001);
    const ImportedText few(exported(store, {}, {.most_samples = 5000}));
    CHECK(few.lines().ends_with("app;often 1\n"));
    CHECK(few.lines({}, true).ends_with("app;often 5000\n"));
    const ImportedText empty(exported(Store{}));
    CHECK(empty.problem == "the perf.data file has no events, or its list of events is cut off or damaged");
    CHECK(ImportedText(exported(store, {.start_ns = 1, .end_ns = 2})).noted("import-no-samples"));
}

TEST_CASE("embedded names in a perf.data file: damage ends them") {
    perf_data::EmbeddedSymbols names;
    names.events = {{"cycles", "cycles"}};
    names.functions = {{10, "f", "m", {{"a.c", 1, 0, 0, FrameKind::user}, {"a.c", 2, 0, 0, FrameKind::user}}},
                       {12, "g", "", {{}}}};
    const std::string bytes = encode_embedded_symbols(names);
    for (std::size_t size = 0; size <= bytes.size(); ++size) {
        perf_data::EmbeddedSymbols read;
        CHECK(decode_embedded_symbols(as_bytes_view(bytes).first(size), std::endian::native, read) ==
              (size == bytes.size()));
    }
    perf_data::EmbeddedSymbols read;
    REQUIRE(decode_embedded_symbols(as_bytes_view(bytes), std::endian::native, read));
    CHECK(read.find(9).first == nullptr);
    CHECK(read.find(11).first->places[read.find(11).second].line == 2);
    CHECK(read.find(12).first->name == "g");
    CHECK(read.find(13).first == nullptr);
    std::swap(names.functions[0], names.functions[1]);
    CHECK_FALSE(decode_embedded_symbols(as_bytes_view(encode_embedded_symbols(names)), std::endian::native, read));
}

}  // namespace flamewire::profile
