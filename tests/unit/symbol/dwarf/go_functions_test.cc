// Small Go programs written by hand (go_program.h) and resolved by a symbolizer.
#include "symbol/dwarf/go_functions.h"

#include <catch2/catch.hpp>

#include <fstream>

#include "../../elf/go_program.h"
#include "../fixture.h"
#include "symbol/symbolizer.h"

using namespace flamewire::symbol;
using namespace flamewire::elf;

namespace {

struct Program {
    explicit Program(const std::string& bytes) : path(folder.path() + "/program") {
        std::ofstream(path, std::ios::binary) << bytes;
    }
    [[nodiscard]] ModuleIdentity identity() const {
        ModuleIdentity module;
        module.path = path;
        return module;
    }

    ScratchFolder folder;
    std::string path;
};

// "function file:line", innermost first. Inlined ones are marked.
std::vector<std::string> frames_at(Symbolizer& symbolizer, const Program& program, std::uint64_t address,
                                   bool return_address = false) {
    const flamewire::CodeAddress addresses[] = {{address, return_address}};
    const Resolved resolved = symbolizer.resolve(program.identity(), addresses);
    std::vector<std::string> frames;
    for (const SourceFrame& frame : resolved.frames)
        frames.push_back(resolved.strings[frame.function] + " " + resolved.strings[frame.file] + ":" +
                         std::to_string(frame.line) + (frame.inlined ? " inlined" : ""));
    return frames;
}

using Frames = std::vector<std::string>;

}  // namespace

TEST_CASE("a stripped Go program has functions, lines and inlined calls") {
    for (const GoTableShape& shape :
         {GoTableShape{18, true, false, 1}, GoTableShape{20, true, true, 4}, GoTableShape{20, false, false, 1}}) {
        CAPTURE(shape.version, shape.is_64, shape.big_endian, shape.quantum);
        const unsigned q = shape.quantum;
        GoTable table = go_table_with_inlined_calls(shape);
        table.functions[0].depth = {{0, 28 * q}};  // padding follows
        const Program program(go_program(table));
        Symbolizer symbolizer(Config{});
        const auto at = [&](unsigned instructions, bool return_address = false) {
            return frames_at(symbolizer, program, 0x401020 + instructions * q, return_address);
        };
        CHECK(at(0) == Frames{"main.(*T).Method /src/b.go:10"});
        CHECK(at(4) == Frames{"main.a /src/b.go:10 inlined", "main.(*T).Method /src/b.go:10"});
        // main.b is called at byte 9 of the function, main.a at byte 2.
        const std::string line_of_9 = q == 1 ? "300" : "10";
        const std::string a = q == 1 ? "main.a /src/b.go:" + line_of_9 + " inlined" : "";
        CHECK(at(12).front() == "main.b /src/b.go:300 inlined");
        CHECK(at(12).back() == "main.(*T).Method /src/b.go:10");
        if (q == 1) CHECK(at(12) == Frames{"main.b /src/b.go:300 inlined", a, "main.(*T).Method /src/b.go:10"});
        CHECK(at(4, true) == Frames{"main.(*T).Method /src/b.go:10"});
        CHECK(at(20) == Frames{"main.(*T).Method /src/b.go:11"});
        CHECK(at(28).empty());
        CHECK(at(32) == Frames{"main.main /src/c.go:20"});
        CHECK(at(232).empty());
        CHECK(frames_at(symbolizer, program, 0x401000).empty());

        const flamewire::CodeAddress address[] = {{0x401020 + 5 * q, false}, {0x401020 + 28 * q, false}};
        const auto functions = symbolizer.functions(program.identity(), address);
        CHECK(functions[0].name == "main.(*T).Method");
        CHECK(functions[0].start == 0x401020);
        CHECK(functions[0].size == 28 * q);
        CHECK(functions[1].size == 0);

        const ModuleReport report = symbolizer.report(program.identity());
        CHECK(report.quality == Quality::go_table);
        CHECK(report.problem == "names, lines and inlined functions come from Go's function table in " + program.path +
                                    ", which has no usable debug info");
        CHECK(report.remedy.find("--binary FILE") != std::string::npos);

        Config without_inlines;
        without_inlines.inlines = false;
        Symbolizer outermost(without_inlines);
        CHECK(frames_at(outermost, program, 0x401020 + 12 * q) == Frames{"main.(*T).Method /src/b.go:10"});
    }
}

TEST_CASE("before Go 1.18, inlined calls are unknown") {
    for (const int version : {2, 16}) {
        GoTable table = go_table_with_inlined_calls({.version = version});
        if (version == 2) {
            table.functions[0].file = {{2, 32}};
            table.inlined_names.clear();
        }
        const std::string bytes = table.bytes();
        const Program program(go_elf_file(
            table, {{".text", 1, 6, 0x401000, std::string(0x200, '\x90')}, {".gopclntab", 1, 2, 0x500020, bytes}}));
        Symbolizer symbolizer(Config{});
        CHECK(frames_at(symbolizer, program, 0x401024) == Frames{"main.(*T).Method /src/b.go:10"});
        CHECK(
            symbolizer.report(program.identity()).problem.starts_with("names and lines come from Go's function table"));
    }
}

TEST_CASE("an endless tree of inlined calls gives only the function") {
    GoTable table = go_table_with_inlined_calls({});
    const std::string bytes = table.bytes();
    // The call at 4 is its own caller.
    const std::string tree =
        "unused.." + go_inlined_call(table, -1, "main.a", 5) + go_inlined_call(table, 0, "main.b", 5);
    const Program program(
        go_elf_file(table, {{".gopclntab", 1, 2, 0x500020, bytes},
                            {".rodata", 1, 2, 0x480000, tree},
                            {".noptrdata", 1, 3, 0x600000, go_module_data(table, 0x500020, 0x480000)}}));
    Symbolizer symbolizer(Config{});
    CHECK(frames_at(symbolizer, program, 0x401024) == Frames{"main.(*T).Method /src/b.go:10"});
    CHECK(frames_at(symbolizer, program, 0x40102c) == Frames{"main.(*T).Method /src/b.go:300"});
}

TEST_CASE("symbols precede Go's table, except those without a size that would extend over other functions") {
    GoTable table = go_table_with_inlined_calls({});
    const std::string bytes = table.bytes();
    const auto symbol = [&](std::uint64_t name, std::uint64_t address, std::uint64_t size) {
        return table.number(name, 4) + std::string("\x12\0\1\0", 4) + table.number(address, 8) + table.number(size, 8);
    };
    for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{32}}) {
        std::string file =
            go_elf_file(table, {{".text", 1, 6, 0x401000, std::string(0x200, '\x90')},
                                {".dynsym", 11, 2, 0x300000, std::string(24, '\0') + symbol(1, 0x401020, size)},
                                {".dynstr", 3, 2, 0x310000, std::string("\0exported\0", 10)},
                                {".gopclntab", 1, 2, 0x500020, bytes}});
        // The section header of the symbols has sh_link 3 and sh_entsize 24.
        const std::size_t header = file.size() - 6 * 64 + 2 * 64;
        file[header + 40] = 3;
        file[header + 56] = 24;
        const Program program(file);
        Symbolizer symbolizer(Config{});
        CHECK(frames_at(symbolizer, program, 0x401020) == Frames{"exported /src/b.go:10"});
        CHECK(frames_at(symbolizer, program, 0x401040) == Frames{"main.main /src/c.go:20"});
        const flamewire::CodeAddress addresses[] = {{0x401020, false}, {0x401040, false}};
        const auto functions = symbolizer.functions(program.identity(), addresses);
        CHECK(functions[0].name == "exported");
        CHECK(functions[1].name == "main.main");
    }
}

TEST_CASE("other programs and damaged tables have no Go names") {
    Symbolizer symbolizer(Config{});
    ModuleIdentity other;
    const ScratchFolder folder;
    other.path = folder.copy(fixture("stripped"), "program");
    CHECK(symbolizer.report(other).quality == Quality::dynamic_symbols);

    GoTable table = go_table_with_inlined_calls({});
    std::string bytes = go_program(table);
    bytes[bytes.find("\xf0\xff\xff\xff")] = '\0';
    const Program damaged(bytes);
    CHECK(frames_at(symbolizer, damaged, 0x401024).empty());
    CHECK(symbolizer.report(damaged.identity()).quality == Quality::none);
}
