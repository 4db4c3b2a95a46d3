#include "jit_files.h"

#include <catch2/catch.hpp>

#include <fstream>

#include "agent/process/jitdump.h"
#include "agent/process/perf_map.h"
#include "base/file.h"
#include "base/hex.h"
#include "fake_proc.h"

using namespace flamewire;
using namespace flamewire::agent;
using namespace flamewire::agent::test;

namespace {

constexpr std::size_t much = 1 << 20;

void append(const std::string& path, std::string_view bytes) {
    std::ofstream(path, std::ios::app | std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

template <class File>
struct Read {
    explicit Read(const FakeProc& proc) : path(proc.path("file")), file(*open_read(path)) {}
    JitProgress go(std::size_t limit = much, std::uint64_t now_ns = 5'000) {
        entries.clear();
        return file.advance(limit, {1'000, now_ns, INT64_MAX}, entries);
    }
    // The body of a jitdump entry.
    std::optional<JitBody> body(std::size_t entry) const {
        return file.body_of(entries[entry].record, entries[entry].lines, entries[entry].unwinding);
    }
    std::string path;
    File file;
    std::vector<JitEntry> entries;
};

}  // namespace

TEST_CASE("a name in a perf map is truncated at the limit") {
    FakeProc proc;
    proc.write("file", "1000 10 " + std::string(3'000, 'x') + "\n");
    Read<PerfMapFile> read(proc);
    CHECK(read.go() == JitProgress::at_end);
    REQUIRE(read.entries.size() == 1);
    const auto body = read.file.body_of(read.entries[0].record);
    REQUIRE(body);
    CHECK(body->name == std::string(max_jit_name_bytes, 'x'));
}

TEST_CASE("a perf map that grows, with an incomplete last line") {
    FakeProc proc;
    proc.write("file", "1000 10 one\n2000 10 tw");
    Read<PerfMapFile> read(proc);
    CHECK(read.go() == JitProgress::at_end);
    REQUIRE(read.entries.size() == 1);
    CHECK(read.entries[0].start == 0x1000);
    CHECK(read.entries[0].end == 0x1010);
    CHECK(read.entries[0].from_ns == 0);
    CHECK(read.go() == JitProgress::at_end);
    CHECK(read.entries.empty());
    append(read.path, "o\nnonsense\n3000 8 three\n");
    CHECK(read.go() == JitProgress::at_end);
    REQUIRE(read.entries.size() == 2);
    CHECK(read.entries[0].from_ns == 0);  // the first read found its first byte
    CHECK(read.entries[1].from_ns >= 1'000);
    CHECK(read.entries[1].from_ns <= 5'000);
    CHECK(read.file.body_of(read.entries[0].record)->name == "two");
    CHECK(read.file.body_of(read.entries[1].record)->name == "three");
    CHECK(read.file.body_of(read.entries[1].record)->start == 0x3000);
}

TEST_CASE("a rewritten perf map is distinguished from one that grows") {
    FakeProc proc;
    proc.write("file", "1000 10 one\n2000 10 two\n");
    Read<PerfMapFile> read(proc);
    CHECK(read.go() == JitProgress::at_end);
    std::ofstream(read.path, std::ios::trunc) << "5000 10 x\n";  // shorter
    CHECK(read.go() == JitProgress::rewritten);
    Read<PerfMapFile> longer(proc);
    CHECK(longer.go() == JitProgress::at_end);
    std::ofstream(read.path, std::ios::trunc) << "6000 10 y\n7000 10 z\n";
    CHECK(longer.go() == JitProgress::rewritten);
}

TEST_CASE("a perf map is read in pieces, and an endless line does not stop it") {
    FakeProc proc;
    std::string text;
    for (int i = 0; i < 40'000; ++i) text += "1000 10 some_function_with_a_name\n";
    text += "2000 10 " + std::string(200'000, 'n') + "\n3000 10 after\n";
    proc.write("file", text);
    Read<PerfMapFile> read(proc);
    std::size_t entries = 0, pieces = 0;
    for (JitProgress progress = JitProgress::more; progress == JitProgress::more; ++pieces) {
        progress = read.go(256 * 1024);
        entries += read.entries.size();
        if (!read.entries.empty()) CHECK(read.file.body_of(read.entries.back().record));
    }
    CHECK(pieces > 4);
    CHECK(entries == 40'001);
    CHECK(read.entries.back().start == 0x3000);
}

TEST_CASE("names of jitdumps") {
    CHECK(is_jitdump_name("/home/a/.debug/jit/jit-4242.dump"));
    CHECK(is_jitdump_name("jit-1.dump"));
    for (const std::string_view other :
         {"", "/tmp/jit-.dump", "/tmp/jit-12.dumb", "/tmp/xjit-12.dump", "/tmp/jit-1a.dump", "/jit-12.dump/x"})
        CHECK_FALSE(is_jitdump_name(other));
}

TEST_CASE("a jitdump: times, moves, lines, an incomplete record") {
    FakeProc proc;
    const std::string second = jitdump_load(300, 0x2000, 0x20, "two");
    proc.write("file",
               jitdump_header() +
                   jitdump_lines(90, 0x1000, {{0x1000, 7, "/a.js"}, {0x1008, 8, "\xff"}, {0x1010, 3, "/b.js"}}) +
                   jitdump_load(100, 0x1000, 0x20, "one") + jitdump_record(4, 110, std::string(24, '\0')) +
                   jitdump_record(99, 111, "?") + jitdump_move(200, 0x1000, 0x5000, 0x20) + second.substr(0, 50));
    Read<JitdumpFile> read(proc);
    CHECK(read.go() == JitProgress::at_end);
    REQUIRE(read.entries.size() == 2);
    CHECK(read.entries[0].from_ns == 100);
    CHECK(read.entries[0].end == 0x1020);
    CHECK(read.entries[1].moved_from == 0x1000);
    CHECK(read.entries[1].start == 0x5000);
    CHECK(read.entries[1].from_ns == 200);
    const auto body = read.body(0);
    REQUIRE(body);
    CHECK(body->name == "one");
    REQUIRE(body->rows.size() == 3);
    CHECK(body->rows[1].offset == 8);
    CHECK(body->rows[1].line == 8);
    CHECK(body->files[body->rows[1].file] == "/a.js");
    CHECK(body->files[body->rows[2].file] == "/b.js");
    append(read.path, second.substr(50));
    CHECK(read.go() == JitProgress::at_end);
    REQUIRE(read.entries.size() == 1);
    CHECK(read.body(0)->name == "two");
}

// `node --perf-prof --perf-prof-unwinding-info` of Node 18.20 on x86-64: the data that V8 wrote for a function of 544
// bytes, and its rows from `readelf --debug-dump=frames-interp` of binutils 2.40.
TEST_CASE("unwinding information of V8") {
    const std::string frames = *from_hex(
        "1800000000000000037a4c520001781002ff1b0c07089001000000002000000020000000bcfdffff1e020000004f0e108602430d06740d"
        "07410e"
        "08520c06100000000000011b033bb8ffffff010000009cfdffffd8ffffff");
    constexpr std::uint64_t size = 544;
    FakeProc proc;
    proc.write("file", jitdump_header() + jitdump_unwinding(1, frames, 20, frames.size()) +
                           jitdump_load(1, 0x1000, size, "f") + jitdump_load(2, 0x2000, size, "without") +
                           jitdump_unwinding(3, frames, 20, 0) + jitdump_load(3, 0x3000, size, "not mapped") +
                           jitdump_unwinding(4, frames, 89, frames.size()) + jitdump_load(4, 0x4000, size, "damaged") +
                           jitdump_unwinding(5, frames, 20, frames.size()) + jitdump_load(5, 0x5000, size - 1, "odd"));
    Read<JitdumpFile> read(proc);
    CHECK(read.go() == JitProgress::at_end);
    REQUIRE(read.entries.size() == 5);
    const JitBody f = *read.body(0);
    struct Row {
        std::uint64_t begin, end;
        std::uint8_t cfa_register;
        std::int32_t cfa_offset;
        bool rbp_saved;
    };
    constexpr std::uint8_t rbp = 6, rsp = 7;
    const std::vector<Row> rows{{0, 15, rsp, 8, false},  {15, 18, rsp, 16, true}, {18, 70, rbp, 16, true},
                                {70, 71, rsp, 16, true}, {71, 89, rsp, 8, true},  {89, 542, rbp, 16, true}};
    for (const Row& row : rows) {
        for (const std::uint64_t offset : {row.begin, row.end - 1}) {
            CAPTURE(offset);
            const auto rule = f.rules.find(offset, unwind::Arch::x86_64);
            REQUIRE(rule);
            CHECK(rule->kind == unwind::Rule::Kind::compact);
            CHECK(rule->cfa_register == row.cfa_register);
            CHECK(rule->cfa_offset == row.cfa_offset);
            CHECK(rule->return_at == -1);
            CHECK((rule->saved != 0) == row.rbp_saved);
            CHECK(offset - rule->before == row.begin);
            CHECK(offset + rule->after == row.end);
        }
    }
    CHECK_FALSE(f.rules.find(542, unwind::Arch::x86_64));
    CHECK_FALSE(f.rules.find(0, unwind::Arch::x86));
    for (const std::size_t other : {1, 2, 3}) {
        CAPTURE(other);
        const auto body = read.body(other);
        REQUIRE(body);
        CHECK_FALSE(body->rules.find(0, unwind::Arch::x86_64));
    }
    // The .eh_frame starts at a multiple of 8, relative to the code.
    CHECK(read.body(4)->rules.find(0, unwind::Arch::x86_64));
}

TEST_CASE("addresses in V8's lines include an ELF header, and damaged entries are left out") {
    FakeProc proc;
    proc.write("file",
               jitdump_header() +
                   jitdump_lines(1, 0x1000, {{0x1040, 1, "/a.js"}, {0x1050, 2, "/a.js"}, {0x1045, 3, "/a.js"}}) +
                   jitdump_load(1, 0x1000, 0x20, "f") +
                   jitdump_lines(2, 0x3000, {{0x3040, 1, "\xf1\x83\x02"}, {0xfeccc214cd03a480, 9, "x"}}) +
                   jitdump_load(2, 0x3000, 0x20, "g"));
    Read<JitdumpFile> read(proc);
    CHECK(read.go() == JitProgress::at_end);
    REQUIRE(read.entries.size() == 2);
    const auto f = read.body(0);
    REQUIRE(f->rows.size() == 2);
    CHECK(f->rows[0].offset == 0);
    CHECK(f->rows[1].offset == 0x10);
    CHECK(read.body(1)->rows.empty());
}

TEST_CASE("a jitdump with the times of another clock gets the times of its file") {
    FakeProc proc;
    proc.write("file", jitdump_header(1) + jitdump_load(77, 0x1000, 0x20, "f"));
    Read<JitdumpFile> counter(proc);
    CHECK(counter.go() == JitProgress::at_end);
    CHECK(counter.entries.at(0).from_ns >= 1'000);
    proc.write("file", jitdump_header() + jitdump_load(UINT64_MAX, 0x1000, 0x20, "f"));
    Read<JitdumpFile> future(proc);
    CHECK(future.go() == JitProgress::at_end);
    CHECK(future.entries.at(0).from_ns <= 5'000);
}

TEST_CASE("files that are not jitdumps are refused") {
    FakeProc proc;
    proc.write("file", "7f00 10 f\n" + std::string(100, ' '));
    CHECK(Read<JitdumpFile>(proc).go() == JitProgress::damaged);
    std::string swapped = jitdump_header();
    std::swap(swapped[0], swapped[3]);
    std::swap(swapped[1], swapped[2]);
    proc.write("file", swapped);
    CHECK(Read<JitdumpFile>(proc).go() == JitProgress::damaged);
    std::string empty_record = jitdump_header();
    empty_record.append(16, '\0');
    proc.write("file", empty_record);
    CHECK(Read<JitdumpFile>(proc).go() == JitProgress::damaged);
    proc.write("file", jitdump_header().substr(0, 20));
    CHECK(Read<JitdumpFile>(proc).go() == JitProgress::at_end);  // still being written
}
