// Imports: the store has the contents of the file. Expected lines are written by hand.
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <algorithm>

#include "batch_maker.h"
#include "imported.h"
#include "profile/formats/collapsed.h"
#include "profile/formats/collapsed_import.h"
#include "profile/formats/firefox.h"
#include "profile/formats/recording_builder.h"
#include "profile/formats/speedscope.h"
#include "profile/store/functions.h"
#include "profile/store/tables.h"

namespace flamewire::profile {
namespace {

// An import as a store that received it over the wire.
struct Imported {
    Store store;
    std::vector<wire::Notice> notices;
    wire::EventPeriods periods, theirs;
    std::size_t batches = 0;
    std::uint32_t epochs = 0;
    std::string problem;

    RecordingBuilder::Sink sink() {
        return [this](wire::Batch batch) -> Result<bool> {
            ++batches;
            epochs = std::max(epochs, batch.epoch);
            notices.insert(notices.end(), batch.notices.begin(), batch.notices.end());
            wire::learn_periods(batch, periods);
            const std::string bytes = wire::encode(batch, periods);
            const wire::Batch arrived = TRY(wire::decode(as_bytes_view(bytes), theirs));
            TRY(store.apply(arrived));
            return true;
        };
    }
    void folded(const std::vector<std::string_view>& pieces) {
        wire::Recording about;
        about.start_ns = 1'000'000'000;
        RecordingBuilder builder({1}, about, 0, sink());
        FoldedScan scan;
        LineFeed lines;
        for (const std::string_view piece : pieces) {
            const auto scan_line = [&](std::string_view line) -> Result<bool> {
                scan.line(line);
                return true;
            };
            REQUIRE(lines.feed(piece, scan_line));
            if (piece == pieces.back()) REQUIRE(lines.finish(scan_line));
        }
        CollapsedImport import(builder, 100, scan.shape());
        Result<bool> done = true;
        for (const std::string_view piece : pieces)
            if (done) done = import.feed(piece);
        if (done) done = import.finish();
        if (done) done = builder.finish("imported");
        if (!done) problem = done.error().message;
    }
    [[nodiscard]] std::string lines() const { return collapsed(store, {}); }
    [[nodiscard]] FrameKind kind_of(std::string_view name) const {
        const Store::Tables& tables = store.tables();
        for (FunctionId id = 1; id < tables.functions.size(); ++id)
            if (tables.strings[tables.functions[id].name] == name) return tables.functions[id].kind;
        return FrameKind::unknown;
    }
};

}  // namespace

TEST_CASE("folded stacks: adjacent lines that share frames, split at any position") {
    const std::string text =
        "main;work;get 3\n"
        "main;work;get;more 4\n"
        "main;work 5\n"
        "main;workers 1\n"
        "main;work;get 10\n"
        "other 2";
    const std::string expected =
        "main;work 5\n"
        "main;work;get 13\n"
        "main;work;get;more 4\n"
        "main;workers 1\n"
        "other 2\n";
    Imported whole;
    whole.folded({text});
    CHECK(whole.lines() == expected);
    CHECK(whole.batches == 1);
    for (std::size_t split = 1; split < text.size(); ++split) {
        Imported parts;
        parts.folded({std::string_view(text).substr(0, split), std::string_view(text).substr(split)});
        CHECK(parts.lines() == expected);
    }
    std::vector<std::string_view> bytes;
    for (std::size_t at = 0; at < text.size(); ++at) bytes.push_back(std::string_view(text).substr(at, 1));
    Imported one_by_one;
    one_by_one.folded(bytes);
    CHECK(one_by_one.lines() == expected);
}

TEST_CASE("folded stacks: other lines that scripts write") {
    Imported imported;
    imported.folded(
        {"a b;operator new(unsigned long) 2\r\n"
         "\n"
         "  \t\n"
         ";lead;;inner; 3\n"
         "scaled 2.50\n"
         "scaled 1e2\n"
         "many 5000000000\n"
         "none 0\n"
         "spaces   7  \n"});
    CHECK(imported.lines() ==
          "a b;operator new(unsigned long) 1\n"
          "lead;inner 1\n"
          "many 1\n"
          "scaled 2\n"
          "spaces 1\n");
    CHECK(collapsed(imported.store, {}, {.weights = true}) ==
          "a b;operator new(unsigned long) 2000\n"
          "lead;inner 3000\n"
          "many 5000000000000\n"
          "scaled 102500\n"
          "spaces 7000\n");
    CHECK(imported.problem.empty());
    REQUIRE(imported.notices.size() == 2);
    CHECK(imported.notices[0].code == "import-decimals");
    CHECK(imported.notices[1].code == "import-no-times");
}

TEST_CASE("folded stacks: an unlimited number of names makes several epochs, which a session joins") {
    std::string text = "main;first 1\n";
    constexpr unsigned frames = CollapsedImport::max_entries / 3 + 1'000;  // each is a string, a location and a stack
    for (unsigned i = 0; i < frames; ++i) text += fmt::format("main;f{}_[j] 2\n", i);
    text += "main;first 1\nmain;f7_[j] 5\n";
    Imported imported;
    imported.folded({text});
    CHECK(imported.problem.empty());
    CHECK(imported.epochs == 2);
    const std::string lines = imported.lines();
    CHECK(std::ranges::count(lines, '\n') == frames + 1);
    CHECK(lines.find("main;first 2\n") != std::string::npos);
    CHECK(lines.find("main;f7 7\n") != std::string::npos);
    CHECK(lines.find(fmt::format("main;f{} 2\n", frames - 1)) != std::string::npos);
    CHECK(imported.kind_of(fmt::format("f{}", frames - 1)) == FrameKind::jit);
    REQUIRE(imported.notices.size() == 1);
}

TEST_CASE("folded stacks: markers of frame kinds") {
    Imported imported;
    imported.folded({"app;run_[j];fast_[i];sys_read_[k] 4\n_[x;[k];a_[q] 1\n"});
    CHECK(imported.lines() == "_[x;[k];a_[q] 1\napp;run;fast;sys_read 4\n");
    CHECK(imported.kind_of("app") == FrameKind::user);
    CHECK(imported.kind_of("run") == FrameKind::jit);
    CHECK(imported.kind_of("fast") == FrameKind::inlined);
    CHECK(imported.kind_of("sys_read") == FrameKind::kernel);
}

TEST_CASE("folded stacks: invalid lines are counted, and a file that has only those is refused") {
    Imported some;
    some.folded({"# a comment\na;b 1\n\nno count\nc 2\n"});
    CHECK(some.lines() == "a;b 1\nc 2\n");
    REQUIRE(some.notices.size() == 2);
    CHECK(some.notices[0].text == "1 of 3 lines are not folded stacks and were skipped. The first is line 4.");
    Imported all;
    all.folded({"hello\nworld\n"});
    CHECK(all.problem.starts_with("no line of the file is a folded stack"));
    Imported nothing;
    nothing.folded({});
    CHECK_FALSE(nothing.problem.empty());
}

TEST_CASE("folded stacks are recognized") {
    CHECK(CollapsedImport::recognises("a;b;c 1\n"));
    CHECK(CollapsedImport::recognises("a 1"));
    CHECK(CollapsedImport::recognises("# made by a script\na;b 1\na;c 2\nd 3\ne 4\nf 5\n"));
    CHECK(CollapsedImport::recognises(std::string("a;b;c 1\n") + std::string(100, 'x')));
    CHECK_FALSE(CollapsedImport::recognises(""));
    CHECK_FALSE(CollapsedImport::recognises("{\"a\": 1}\n"));
    CHECK_FALSE(CollapsedImport::recognises("hello world\n"));
    CHECK(CollapsedImport::recognises("a;b 1\nno number\nc;d 2\n"));
    CHECK(CollapsedImport::recognises("# one\n# two\n# three\na;b 1\n"));
    CHECK_FALSE(CollapsedImport::recognises("1 2\n3 4\n"));
    CHECK_FALSE(CollapsedImport::recognises("10:15:00 1,5 2\n10:15:01 -3e5 4\n"));
    CHECK_FALSE(CollapsedImport::recognises(std::string_view("PERFILE2\0\0\0\1\n a 1\n", 20)));
    CHECK_FALSE(
        CollapsedImport::recognises("bash 123 4.5: 1 cycles:\n\t 1 f (x)\n\t 2 g (y)\n\nbash 1 2: 3 cycles:\n"));
}

TEST_CASE("folded stacks: numbers keep all digits") {
    const auto scaled = [](std::string_view text, int places) { return parse_folded_number(text)->scaled(places); };
    CHECK(scaled("0.125", 3) == 125);
    CHECK(scaled("0.1250", 6) == 125'000);
    CHECK(scaled("1e-9", 3) == 1);
    CHECK(scaled("1e-300", 18) == 1);
    CHECK(scaled("0.0", 3) == 0);
    CHECK(scaled("2.5e3", 0) == 2500);
    CHECK(scaled("0.0015", 3) == 2);
    CHECK(scaled("0.0014999", 3) == 1);
    CHECK(scaled("9000000000000000000", 0) == 9'000'000'000'000'000'000);
    CHECK(scaled("9000000000000000000", 3) == 9'000'000'000'000'000'000);
    for (const std::string_view text : {"", ".", "-1", "+1", "1e", "1e+", "1e999", "9000000000000000001", "inf", "nan",
                                        "0x10", "1.2.3", "1,5", "99999999999999999999"})
        CHECK_FALSE(parse_folded_number(text));
}

TEST_CASE("folded stacks: as many decimal places as needed") {
    const auto shape = [](std::initializer_list<std::string_view> lines) {
        FoldedScan scan;
        for (const std::string_view line : lines) scan.line(line);
        return scan.shape();
    };
    CHECK(shape({"a;b 3", "a 4.0"}).places == 0);
    CHECK_FALSE(shape({"a;b 3", "a 4.0"}).decimals);
    CHECK(shape({"a;b 3.5"}).places == 3);
    CHECK(shape({"a;b 0.30000000000000004", "c 5"}).places == 9);
    CHECK(shape({"a;b 1e-12"}).places == 12);
    // Sums that would overflow.
    CHECK(shape({"a;b 0.000001", "c 9000000000000000"}).places == 3);
    CHECK(shape({}).places == 0);
    CHECK(shape({"a;b 1 2", "c 3 4"}).two_columns);
    CHECK_FALSE(shape({"a;b 1 2", "thread 3 4", "c 5"}).two_columns);
    CHECK_FALSE(shape({}).two_columns);
}

TEST_CASE("a large import is several batches of one epoch") {
    std::string text;
    for (int i = 0; i < 300'000; ++i) text += "root;f" + std::to_string(i % 100'000) + " 1\n";
    Imported imported;
    imported.folded({text});
    CHECK(imported.batches >= 2);
    const std::string lines = imported.lines();
    CHECK(std::count(lines.begin(), lines.end(), '\n') == 100'000);
    CHECK(lines.find("root;f77777 3\n") != std::string::npos);
}

TEST_CASE("rows of an import are in the order of the wire, equal ones added up") {
    std::vector<wire::Row> sent, encoded;
    wire::EventPeriods periods, theirs;
    RecordingBuilder builder({1}, {}, 0, [&](wire::Batch batch) -> Result<bool> {
        sent = batch.rows;
        wire::learn_periods(batch, periods);
        wire::encode(batch, periods);
        encoded = batch.rows;
        return true;
    });
    const wire::Id event = builder.event("e", "u"), other = builder.event("f", "u");
    const wire::Id one = builder.thread(1, 1, "a"), two = builder.thread(1, 2, "b");
    const wire::Id stack = builder.stack(0, builder.location({.function = "f"}));
    const auto row = [&](std::uint64_t bucket, wire::Id of, wire::Id thread, std::uint32_t cpu, wire::Id at,
                         std::uint32_t count,
                         std::uint64_t weight) { REQUIRE(builder.add({bucket, of, thread, cpu, at, count, weight})); };
    row(12, other, one, 0, 0, 1, 5);
    row(11, event, two, 3, stack, 1, 5);
    row(10, event, two, 3, stack, 2, 7);
    row(11, event, two, 3, stack, 4, 9);
    row(11, event, two, 3, 0, 1, 1);
    row(12, event, one, 9, stack, 1, 2);
    row(11, event, two, 3, stack, 0xffff'ffff, 1);
    REQUIRE(builder.finish("end"));
    using Rows = std::vector<wire::Row>;
    CHECK(sent == Rows{{12, event, one, 9, stack, 1, 2},
                       {11, event, two, 3, 0, 1, 1},
                       {10, event, two, 3, stack, 2, 7},
                       {11, event, two, 3, stack, 5, 14},
                       {11, event, two, 3, stack, 0xffff'ffff, 1},
                       {12, other, one, 0, 0, 1, 5}});
    std::uint64_t count = 0;
    for (const wire::Row& kept : encoded) count += kept.count;
    CHECK(count == 0xffff'ffff + std::uint64_t{10});
    // Numbers that are too large for one sort key.
    row(std::uint64_t{1} << 60, event, one, 0xffff'ffff, stack, 1, 2);
    row(1, event, one, 0xffff'ffff, stack, 1, 2);
    REQUIRE(builder.finish("end"));
    REQUIRE(encoded.size() == 2);
    CHECK(encoded[0].bucket < encoded[1].bucket);
}

TEST_CASE("a long stream begins a new epoch, and names keep their identity") {
    Store store;
    RecordingBuilder builder({1}, {}, 0, [&](wire::Batch batch) -> Result<bool> {
        wire::EventPeriods periods, theirs;
        wire::learn_periods(batch, periods);
        CHECK(batch.epoch == batch.seq);
        const wire::Batch arrived = TRY(wire::decode(as_bytes_view(wire::encode(batch, periods)), theirs));
        TRY(store.apply(arrived));
        return true;
    });
    for (std::uint64_t turn = 0; turn < 3; ++turn) {
        if (turn != 0) builder.begin_epoch();
        CHECK(builder.entries() == 3);  // the reserved ones
        const wire::Id module = builder.module(wire::ModuleKind::file, "/bin/app");
        const wire::Id stack = builder.stack(builder.stack(0, builder.location({.function = "main", .module = module})),
                                             builder.location({.function = "leaf", .module = module}));
        REQUIRE(builder.add({100 + turn, builder.event("e", "u"), builder.thread(7, 7, "app"), 0, stack, 1, 5}));
        REQUIRE(builder.give());
    }
    CHECK(collapsed(store, {}, {}) == "app;main;leaf 3\n");
    CHECK(store.threads().size() == 2);
}

TEST_CASE("a stack deeper than the store's limit is truncated") {
    std::string deep;
    for (int i = 0; i < 70'000; ++i) deep += i % 2 == 0 ? "a;" : "b;";
    Imported imported;
    imported.folded({deep + "leaf 3\nmain;f 4\n"});
    const std::string lines = imported.lines();
    CHECK(lines.find("main;f 4\n") != std::string::npos);
    CHECK(lines.find("leaf") == std::string::npos);
    CHECK(std::count(lines.begin(), lines.end(), ';') == 65'534 + 1);
}

// Addresses without names can still be symbolized later: with file, build-id, and the flag of return addresses.
TEST_CASE("addresses without names are exported and imported as addresses") {
    BatchMaker maker;
    const wire::Id cycles = maker.event("cycles", "cycles");
    const wire::Id library = maker.module("/usr/lib/liba.so", "ab"), other = maker.module("/opt/liba.so", "cd");
    const wire::Id leaf = maker.location(library, 0x2000), twin = maker.location(other, 0x2000);
    const wire::Id caller = maker.location(library, 0x1235, wire::location_flag::return_address);
    const wire::Id nowhere = maker.location(0, 0x77);
    const wire::Id thread = maker.thread(maker.process(5), 5);
    maker.row(1, cycles, thread, maker.stack({caller, leaf}), 2, 2);
    maker.row(1, cycles, thread, maker.stack({caller, twin}), 1, 1);
    maker.row(1, cycles, thread, maker.stack({nowhere}), 1, 1);
    Store store;
    REQUIRE(store.apply(maker.take()));
    for (const std::string& text : {speedscope(store, {}, "x").value(), firefox(store, {}, {}).value()}) {
        ImportedText again(text);
        INFO(again.recognised);
        CHECK(again.problem.empty());
        CHECK(again.lines() == collapsed(store, {}));
        CHECK(again.function("[liba.so+0x2000]")->kind == FrameKind::unknown);
        std::string requested;
        for (const PendingModule& pending : again.store.take_pending())
            for (const CodeAddress& address : pending.addresses)
                requested += fmt::format("{} {} {:x}{}; ", again.store.modules()[pending.module].identity.path,
                                         again.store.modules()[pending.module].identity.build_id, address.value,
                                         address.return_address ? " returns" : "");
        CHECK(requested == "/usr/lib/liba.so ab 1235 returns; /usr/lib/liba.so ab 2000; /opt/liba.so cd 2000; ");
    }
}

// A search through all threads of other processes each time would take 90 billion steps.
TEST_CASE("many processes replace one with the same pid") {
    RecordingBuilder builder(wire::RecordingId{1}, {}, 0, [](const wire::Batch&) -> Result<bool> { return true; });
    for (std::uint32_t tid = 1; tid <= 300'000; ++tid) (void)builder.thread(1, tid, "a");
    wire::Process process;
    process.pid = 9;
    wire::Id last = 0;
    for (int i = 0; i < 300'000; ++i) {
        (void)builder.process(process);
        const wire::Id thread = builder.thread(9, 9, "b");
        CHECK(thread == (last == 0 ? thread : last + 1));
        last = thread;
    }
    CHECK(builder.thread(1, 300'000, "a") == 300'000);
    CHECK(builder.thread(9, 9, "b") == last);
}

}  // namespace flamewire::profile
