// Line number programs compared with libdw on real files, and programs that expand beyond the limit.
#include "symbol/dwarf/line_program.h"

#include <catch2/catch.hpp>
#include <dwarf.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "../fixture.h"
#include "symbol/files/object_file.h"
#include "symbol/symbolizer.h"

namespace flamewire::symbol {
namespace {

LineSections sections_of(const ObjectFile& file) {
    return {file.section(".debug_line"), file.section(".debug_line_str"), file.section(".debug_str"),
            file.header().big_endian};
}

using Place = std::pair<std::string, int>;  // file and line; empty: no code

// The lines of a unit from libdw, by the address where each begins.
std::map<std::uint64_t, Place> by_libdw(Dwarf_Die& unit, const std::string& directory) {
    std::map<std::uint64_t, Place> places;
    Dwarf_Lines* lines = nullptr;
    std::size_t count = 0;
    REQUIRE(dwarf_getsrclines(&unit, &lines, &count) == 0);
    for (std::size_t i = 0; i < count; ++i) {
        Dwarf_Line* row = dwarf_onesrcline(lines, i);
        Dwarf_Addr address = 0;
        int line = 0;
        bool end = false;
        dwarf_lineaddr(row, &address);
        dwarf_lineno(row, &line);
        dwarf_lineendsequence(row, &end);
        std::string file = dwarf_linesrc(row, nullptr, nullptr);
        if (!file.starts_with('/')) file = directory + "/" + file;
        places[address] = end ? Place{} : Place{file, line};
    }
    return places;
}

std::map<std::uint64_t, Place> by_us(const LineProgram& program, const std::string& directory) {
    std::map<std::uint64_t, Place> places;
    for (const LineRow& row : program.rows)
        places[row.address] = row.file == LineRow::end_of_sequence
                                  ? Place{}
                                  : Place{program.path(row.file, directory), static_cast<int>(row.line)};
    return places;
}

// Without entries that repeat the previous one.
std::map<std::uint64_t, Place> changes(const std::map<std::uint64_t, Place>& places) {
    std::map<std::uint64_t, Place> changes;
    const Place* last = nullptr;
    for (const auto& [address, place] : places) {
        if (last == nullptr || *last != place) changes[address] = place;
        last = &place;
    }
    return changes;
}

TEST_CASE("line programs of each kind of DWARF give the same lines as libdw") {
    for (const std::string build : {"full", "dwarf4", "compressed", "zstd", "split4", "split5"}) {
        INFO(build);
        auto file = ObjectFile::open(fixture(build)).value();
        REQUIRE(file.dwarf() != nullptr);
        const LineSections sections = sections_of(file);
        IndexBudget budget(0);
        Dwarf_CU* cu = nullptr;
        Dwarf_Die unit, other;
        std::size_t lines = 0;
        while (dwarf_get_units(file.dwarf(), cu, &cu, nullptr, nullptr, &unit, &other) == 0) {
            Dwarf_Attribute attribute;
            Dwarf_Word offset = 0;
            if (dwarf_formudata(dwarf_attr(&unit, DW_AT_stmt_list, &attribute), &offset) != 0) continue;
            const char* directory = dwarf_formstring(dwarf_attr(&unit, DW_AT_comp_dir, &attribute));
            REQUIRE(directory != nullptr);
            const auto expected = changes(by_libdw(unit, directory));
            CHECK(changes(by_us(run_line_program(sections, offset, budget), directory)) == expected);
            lines += expected.size();
        }
        CHECK(lines > 20);
        CHECK_FALSE(budget.exceeded());
    }
}

std::string number(std::uint64_t value, std::size_t size) {
    std::string bytes;
    for (std::size_t i = 0; i < size; ++i) bytes += static_cast<char>(value >> 8 * i);
    return bytes;
}

// DWARF 4, 64-bit addresses, one file. Special opcodes: line_base -5, line_range 14, opcode_base 13.
std::string program_of(const std::string& opcodes, const std::string& directories = "",
                       const std::string& files = std::string("a.c\0\0\0\0", 7)) {
    const std::string tables =
        std::string("\1\1\1\xfb\x0e\x0d\0\1\1\1\1\0\0\0\1\0\0\1", 18) + directories + '\0' + files + '\0';
    const std::string body = number(4, 2) + number(tables.size(), 4) + tables + opcodes;
    return number(body.size(), 4) + body;
}
constexpr char next_byte_next_line = 13 + 14 + 6;
std::string at(std::uint64_t address) { return std::string("\0\x09\x02", 3) + number(address, 8); }
const std::string end_of_sequence("\0\1\1", 3);

LineProgram run(const std::string& bytes, IndexBudget& budget) {
    return run_line_program({as_bytes_view(bytes), {}, {}, false}, 0, budget);
}

TEST_CASE("a line program gives its rows") {
    IndexBudget budget(0);
    const std::string bytes =
        program_of(at(0x1000) + next_byte_next_line + next_byte_next_line + std::string("\2\3", 2) + end_of_sequence +
                   at(0x500) + '\1' + std::string("\2\x10", 2) + end_of_sequence);
    const LineProgram program = run(bytes, budget);
    REQUIRE(program.rows.size() == 5);
    CHECK(program.rows[0].address == 0x500);
    CHECK(program.rows[0].line == 1);
    CHECK(program.rows[1].address == 0x510);
    CHECK(program.rows[1].file == LineRow::end_of_sequence);
    CHECK(program.rows[2].address == 0x1001);
    CHECK(program.rows[2].line == 2);
    CHECK(program.rows[3].address == 0x1002);
    CHECK(program.rows[3].line == 3);
    CHECK(program.rows[4].address == 0x1005);
    CHECK(program.path(1, "/build") == "/build/a.c");
    CHECK(program.path(0, "/build").empty());
    CHECK(program.path(2, "/build").empty());
}

TEST_CASE("a line program whose rows exceed the budget has none") {
    constexpr std::size_t most = (std::size_t{64} << 20) / (1 + sizeof(LineRow));
    for (const bool fits : {true, false}) {
        IndexBudget budget(1 << 20);
        // Half of the maximum, because a growing list needs twice the bytes, and twice the maximum.
        const std::string bytes =
            program_of(at(0x1000) + std::string(fits ? most / 2 : most * 2, next_byte_next_line) + end_of_sequence);
        const LineProgram program = run(bytes, budget);
        CHECK(budget.exceeded() != fits);
        CHECK(program.rows.size() == (fits ? most / 2 : 0));
    }
}

TEST_CASE("files of a line program share the name of their directory") {
    IndexBudget budget(0);
    std::string files;
    for (int i = 0; i < 200'000; ++i) files += std::string("f\0\1\0\0", 5);
    const std::string long_name(1 << 20, 'd');
    const LineProgram program = run(program_of(at(0x1000) + end_of_sequence, long_name + '\0', files), budget);
    CHECK_FALSE(budget.exceeded());
    CHECK(program.files.size() == 200'001);
    // No path can be this long.
    CHECK(program.path(1, "/build") == "/build/f");
}

TEST_CASE("damaged line programs have no rows") {
    const std::string good = program_of(at(0x1000) + next_byte_next_line + end_of_sequence);
    for (std::size_t size = 0; size < good.size(); ++size) {
        IndexBudget budget(0);
        CHECK(run(good.substr(0, size), budget).rows.empty());
    }
    for (const auto& [position, value] : {std::pair{4, 1}, {4, 6}, {11, 0}, {14, 0}, {6, 0xff}}) {
        std::string bad = good;
        bad[static_cast<std::size_t>(position)] = static_cast<char>(value);
        IndexBudget budget(0);
        INFO(position);
        CHECK(run(bad, budget).rows.empty());
    }
}

TEST_CASE("a file whose lines exceed the budget keeps its functions and reports it") {
    const ScratchFolder folder;
    const std::string grown = folder.path() + "/program";
    const std::uint64_t address = addresses_of(fixture("full")).at("plain");
    const std::string lines =
        program_of(at(0x1000) + std::string((std::size_t{64} << 20) / 8, next_byte_next_line) + end_of_sequence);
    std::ofstream(folder.path() + "/lines", std::ios::binary) << lines;
    (void)output_of("objcopy --update-section .debug_line=" + folder.path() + "/lines " + fixture("dwarf4") + " " +
                    folder.path() + "/plain && objcopy --compress-debug-sections=zlib " + folder.path() + "/plain " +
                    grown);
    REQUIRE(std::filesystem::file_size(grown) < 1 << 20);
    ModuleIdentity module;
    module.path = grown;
    Symbolizer symbolizer{Config{}};
    CHECK(symbolizer.report(module).problem.empty());
    const Resolved resolved = symbolizer.resolve(module, std::vector<CodeAddress>{{address, true}});
    REQUIRE_FALSE(resolved.frames.empty());
    CHECK_FALSE(resolved.strings[resolved.frames.back().function].empty());
    for (const SourceFrame& frame : resolved.frames) CHECK(frame.line == 0);
    const ModuleReport report = symbolizer.report(module);
    CHECK(report.quality == Quality::debug_info);
    CHECK(report.problem == "the debug info of " + grown +
                                " expands to more than 64 MiB of lines and address ranges: functions beyond that have "
                                "no lines and no inlined functions");
    CHECK_FALSE(report.remedy.empty());
}

}  // namespace
}  // namespace flamewire::symbol
