// Maps of GNU ld: which lines are symbols, which are pieces of a section, and which are neither.
#include "symbol/files/linker_map.h"

#include <catch2/catch.hpp>

#include <fstream>

#include "../fixture.h"
#include "symbol/files/map_lookup.h"
#include "symbol/symbolizer.h"

namespace flamewire::symbol {
namespace {

constexpr const char* map_text = R"(Archive member included to satisfy reference by file (symbol)

Discarded input sections

 .text.dropped  0x0000000000000000       0x20 main.o

Linker script and memory map

LOAD main.o
                0x0000000000000318                . = (SEGMENT_START ("text-segment", 0x0) + SIZEOF_HEADERS)

.plt            0x0000000000001000       0x20
 *(.plt)
 .plt           0x0000000000001000       0x20 crt1.o
                0x0000000000001010                puts@@GLIBC_2.2.5

.text           0x0000000000001040      0x100
 *(.text.unlikely .text.*_unlikely .text.unlikely.*)
 .text.unlikely._ZL4coldi
                0x0000000000001040        0x8 build/main.o
 *fill*         0x0000000000001048        0x8 
 .text.startup.main
                0x0000000000001050       0x30 build/main.o
                0x0000000000001050                main
 .text          0x0000000000001080       0x40 /sdk/lib/libapp.a(road.o)
                0x0000000000001090                city::Road::length(int) const
                0x0000000000001090                road_length
                0x00000000000010a0                operator new(unsigned long, std::nothrow_t const&)
 .text          0x00000000000010c0        0x0 empty.o
 .text.plain    0x00000000000010c0       0x10 build/main.o
                0x00000000000010d0                etext = .
                [!provide]                        PROVIDE (other = .)

.data           0x0000000000003000       0x10
 .data          0x0000000000003000       0x10 build/main.o
                0x0000000000003000                table
 .init_array    0x0000000000003010        0x8 build/main.o

.debug_info     0x0000000000000000     0x1000
 .debug_info    0x0000000000000000     0x1000 build/main.o
OUTPUT(build/app elf64-x86-64)
)";

std::string listed(const LinkerMap& map) {
    std::string text;
    char line[200];
    for (const MapSymbol& symbol : map.symbols) {
        std::snprintf(line, sizeof line, "%llx+%llx %s%s\n", static_cast<unsigned long long>(symbol.address),
                      static_cast<unsigned long long>(symbol.size), symbol.name.c_str(), symbol.text ? "" : " (data)");
        text += line;
    }
    return text;
}

TEST_CASE("a linker map: symbols, functions by their section, and objects by piece") {
    const LinkerMap map = parse_linker_map(map_text).value();
    CHECK(map.output == "build/app");
    CHECK_FALSE(map.arm);
    CHECK(listed(map) ==
          "1010+10 puts@@GLIBC_2.2.5\n"
          "1040+8 _ZL4coldi\n"
          "1050+30 main\n"
          "1080+10 [libapp.a(road.o)]\n"
          "1090+10 city::Road::length(int) const\n"
          "1090+10 road_length\n"
          "10a0+20 operator new(unsigned long, std::nothrow_t const&)\n"
          "10c0+10 plain\n"
          "3000+10 table (data)\n"
          "3010+8 [main.o] (data)\n");
}

TEST_CASE("the same map with Windows line ends, and for 32-bit Arm") {
    std::string text;
    for (const char* at = map_text; *at != '\0'; ++at) text += *at == '\n' ? "\r\n" : std::string(1, *at);
    text.replace(text.find("elf64-x86-64"), 12, "elf32-littlearm");
    const LinkerMap map = parse_linker_map(text).value();
    CHECK(map.arm);
    CHECK(listed(map) == listed(parse_linker_map(map_text).value()));
}

TEST_CASE("other texts are refused, and damaged lines are skipped") {
    for (const char* text : {"", "\n", "Linker script", "VMA LMA Size Align Out In Symbol\n",
                             "\x7f"
                             "ELF"})
        CHECK(parse_linker_map(text).error().code == ErrorCode::invalid);
    const std::string head = "Linker script and memory map\n";
    for (const char* rest :
         {".text\n .text\n", ".text 0x10 0x20\n .text 0xzz 0x10 a.o\n", ".text 0x10 0x20\n .text\n\n",
          ".text 0x10 0x20\n .text 0xffffffffffffffff 0x2 a.o\n                0xffffffffffffffff x\n",
          ".text 0x10 0x20\n .text 0x10 0x0 a.o\n                0x10 x\n", "OUTPUT(\n", "OUTPUT()\n",
          "                0x10  stray\n"})
        CHECK(parse_linker_map(head + rest).value().symbols.empty());
}

class Maps {
public:
    [[nodiscard]] std::string add(const std::string& name, const std::string& output = "other") const {
        const std::string path = folder_.path() + "/" + name;
        std::ofstream(path) << "Linker script and memory map\nOUTPUT(" << output << " elf64-x86-64)\n";
        return path;
    }
    [[nodiscard]] static std::string of(const std::string& module, const std::vector<MapFile>& maps,
                                        const std::string& file = "") {
        ModuleIdentity identity;
        identity.path = module;
        const auto found = map_of(identity, file, maps);
        return found ? found->file.substr(found->file.rfind('/') + 1) : "";
    }

private:
    ScratchFolder folder_;
};

TEST_CASE("a map belongs to a module by assignment, by its name, by its OUTPUT line, or as the file beside it") {
    const Maps maps;
    const std::string given = maps.add("given.map"), named = maps.add("app.map"), output = maps.add("x.map", "out/app");
    const std::string beside = maps.add("host.map");
    const std::string file = beside.substr(0, beside.size() - 4);
    const std::vector<MapFile> all = {{"", output}, {"", named}, {"app", given}};
    CHECK(Maps::of("/usr/bin/app", all, file) == "given.map");
    CHECK(Maps::of("/usr/bin/app", {{"/usr/bin/app", given}}) == "given.map");
    CHECK(Maps::of("/usr/bin/app", {{"", output}, {"", named}}, file) == "app.map");
    CHECK(Maps::of("/usr/bin/app.elf", {{"", named}}) == "app.map");
    CHECK(Maps::of("/usr/bin/app", {{"", output}}, file) == "x.map");
    CHECK(Maps::of("/usr/bin/app", {}, file) == "host.map");
    for (const char* other : {"/usr/bin/other.so", "/usr/bin/ap", "", "/"})
        CHECK(Maps::of(other, {{"", output}, {"", named}, {"app", given}}).empty());
}

TEST_CASE("a map names a file without symbols, with a lower quality than any symbol table") {
    const ScratchFolder folder;
    const std::string program = folder.copy(fixture("stripped"), "program");
    const std::uint64_t inside = addresses_of(fixture("full")).begin()->second;
    char text[200];
    std::snprintf(text, sizeof text,
                  "Linker script and memory map\n\n.text 0x0 0x0\n .text._ZN4city4roadEi 0x%llx 0x4 a.o\n",
                  static_cast<unsigned long long>(inside - 2));
    std::ofstream(folder.path() + "/program.map") << text;
    ModuleIdentity module;
    module.path = program;
    module.size = std::filesystem::file_size(program);
    Symbolizer symbolizer{Config()};
    const std::vector<CodeAddress> addresses = {{inside, true}, {inside + 100, false}};
    const Resolved resolved = symbolizer.resolve(module, addresses);
    REQUIRE(resolved.first == std::vector<std::uint32_t>{0, 1, 1});
    CHECK(resolved.strings[resolved.frames[0].function] == "city::road(int)");
    const ModuleReport report = symbolizer.report(module);
    CHECK(report.quality == Quality::linker_map);
    CHECK(report.map_file == program + ".map");
    CHECK(report.problem.starts_with("names come from the linker map " + program + ".map"));
    CHECK(report.remedy.find("--binary") != std::string::npos);

    // A map of another link: it has no code of this file.
    std::ofstream(folder.path() + "/program.map")
        << "Linker script and memory map\n\n.text 0x0 0x0\n .text.x 0x10 0x4 a.o\n";
    symbolizer.set_config(Config());
    CHECK(symbolizer.resolve(module, addresses).frames.empty());
    CHECK(symbolizer.report(module).problem.find("it is of another link") != std::string::npos);
    // A file with symbols needs no map.
    const std::string full = folder.copy(fixture("full"), "full");
    std::ofstream(full + ".map") << text;
    module.path = full;
    module.size = std::filesystem::file_size(full);
    CHECK(symbolizer.report(module).map_file.empty());
}

}  // namespace
}  // namespace flamewire::symbol
