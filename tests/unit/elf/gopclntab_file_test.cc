// Small ELF files with a Go table in each of the places where Go's linker and external linkers put it.
#include "elf/gopclntab_file.h"

#include <catch2/catch.hpp>

#include "go_program.h"

namespace flamewire::elf {
namespace {

struct TestSection {
    std::string name;
    std::uint32_t type = 1;
    std::uint64_t address = 0;
    std::string bytes{};
    std::uint64_t flags = 2;
};

// The input of find_go_pclntab(), without the bytes of ELF headers.
struct TestFile {
    GoTableShape shape{};
    std::uint16_t type = 2, machine = 62;
    std::string bytes{};
    std::vector<Section> sections{};

    void add(const TestSection& section) {
        bytes.resize((bytes.size() + 31) / 32 * 32 + 64, '\0');
        sections.push_back(
            {section.name, section.type, section.flags, section.address, bytes.size(), section.bytes.size()});
        bytes += section.bytes;
    }
    [[nodiscard]] ByteSource source() const { return source_of_bytes(as_bytes_view(bytes)); }
    [[nodiscard]] Header header() const {
        Header header;
        header.is_64 = shape.is_64;
        header.big_endian = shape.big_endian;
        header.type = type;
        header.machine = machine;
        return header;
    }
    [[nodiscard]] std::optional<GoPclntabPlace> find() const { return find_go_pclntab(source(), header(), sections); }
    [[nodiscard]] std::string first_name() const {
        const auto place = find();
        const auto table = place ? open_go_pclntab(source(), header(), *place) : std::nullopt;
        const auto function = table ? table->function_at(0x401030) : std::nullopt;
        return function ? table->name_of(*function) : "";
    }
};

std::string relocation(const GoTable& table, std::uint64_t address, std::uint64_t info, std::uint64_t addend) {
    return table.number(address, table.word_size()) + table.number(info, table.word_size()) +
           table.number(addend, table.word_size());
}

TEST_CASE("the table in its own section") {
    for (const char* name : {".gopclntab", ".data.rel.ro.gopclntab"})
        for (const int version : {2, 16, 18, 20}) {
            GoTable table = small_go_table({.version = version});
            TestFile file;
            file.add({"", 0});
            file.add({".text", 1, 0x401000, std::string(100, '\x90')});
            file.add({name, 1, 0x500020, table.bytes()});
            const auto place = file.find();
            REQUIRE(place);
            CHECK(place->offset == file.sections[2].offset);
            CHECK(place->size == table.bytes().size());
            CHECK(place->address == 0x500020);
            CHECK(place->text_start == (version >= 18 ? std::optional<std::uint64_t>(0x401000) : std::nullopt));
            CHECK(file.first_name() == "main.(*T).Method");
        }
}

TEST_CASE("position-independent programs have the text start in a relocation") {
    struct Machine {
        std::uint16_t machine;
        std::uint64_t type;
        bool big_endian;
    };
    for (const auto& [machine, type, big_endian] :
         {Machine{62, 8, false}, {183, 1027, false}, {22, 12, true}, {243, 3, false}, {21, 22, true}}) {
        CAPTURE(machine);
        GoTable table = small_go_table({.big_endian = big_endian});
        table.text_start_is_in_the_file = false;
        TestFile file{.shape = table.shape, .type = 3, .machine = machine};
        file.add({".data.rel.ro.gopclntab", 1, 0x500020, table.bytes()});
        CHECK(file.find());
        CHECK_FALSE(file.find()->text_start);
        CHECK(file.first_name().empty());
        // A relocation of another kind and one of another word come first. Others fill the first chunk.
        std::string entries;
        for (std::uint64_t i = 0; i < 5000; ++i) entries += relocation(table, 0x600000 + 8 * i, type, i);
        entries += relocation(table, 0x500020 + 24, type + 1, 0x1111) + relocation(table, 0x500020 + 16, type, 0x2222);
        file.add({".rela.plt", 4, 0, relocation(table, 0x700000, 7, 0)});
        file.add({".rela.dyn", 4, 0, entries + relocation(table, 0x500020 + 24, type, 0x401000)});
        CHECK(file.find()->text_start == 0x401000u);
        CHECK(file.first_name() == "main.(*T).Method");
        // Another machine has other numbers, and a program at fixed addresses has no relocations.
        file.machine = 8;
        CHECK_FALSE(file.find()->text_start);
        file.machine = machine;
        file.type = 2;
        CHECK_FALSE(file.find()->text_start);
    }
}

TEST_CASE("without a section, the table is found by its header, only in Go programs") {
    for (const std::size_t before : {std::size_t{0}, std::size_t{32}, std::size_t{0x10000}, std::size_t{0x1ffe0}}) {
        CAPTURE(before);
        GoTable table = small_go_table({});
        // A header that no table follows.
        std::string data(before, '\xff');
        if (before >= 64) data.replace(32, 32, table.bytes().substr(0, 8) + std::string(24, '\0'));
        data += table.bytes() + std::string(100, '\x11');
        TestFile file{.type = 3};
        file.add({".data.rel.ro", 1, 0x500020, data});
        CHECK_FALSE(file.find());
        file.add({".note.go.buildid", 7, 0x400100, "Go"});
        const auto place = file.find();
        REQUIRE(place);
        CHECK(place->offset == file.sections[0].offset + before);
        CHECK(place->address == 0x500020 + before);
        CHECK(place->size == data.size() - before);
        CHECK(place->text_start == 0x401000u);
        CHECK(file.first_name() == "main.(*T).Method");
        file.sections.back().name = ".go.buildinfo";
        CHECK(file.find());
    }
}

TEST_CASE("the table is aligned by address, wherever the section begins") {
    GoTable table = small_go_table({.version = 20, .is_64 = false, .big_endian = true});
    TestFile file{.shape = table.shape};
    file.add({".data.rel.ro", 1, 0x500028, std::string(24, 'x') + table.bytes()});
    file.add({".go.buildinfo", 1, 0x600000, "Go"});
    REQUIRE(file.find());
    CHECK(file.find()->address == 0x500040);
    CHECK(file.first_name() == "main.(*T).Method");
}

TEST_CASE("moduledata is found by the word that points to the table") {
    for (const int version : {18, 20})
        for (const bool is_64 : {true, false})
            for (const bool big_endian : {true, false}) {
                CAPTURE(version, is_64, big_endian);
                GoTable table = small_go_table({.version = version, .is_64 = is_64, .big_endian = big_endian});
                TestFile file{.shape = table.shape};
                file.add({".gopclntab", 1, 0x500020, table.bytes()});
                file.add({".rodata", 1, 0x480000, go_module_data(table, 0x500020, 0xbad)});
                // Other words point to the table, too.
                const std::string pointer = table.number(0x500020, table.word_size());
                file.add({".noptrdata", 1, 0x600004, std::string(4, 'x') + pointer + std::string(400, '\0'), 3});
                file.add({".data", 1, 0x700000, pointer + go_module_data(table, 0x500020, 0x481234), 3});
                const auto place = file.find();
                REQUIRE(place);
                const auto module = find_go_module(file.source(), file.header(), file.sections, *place);
                REQUIRE(module);
                CHECK(module->text_start == 0x401000);
                CHECK(module->function_data == 0x481234);
                // It must belong to this table.
                GoPclntabPlace other = *place;
                other.text_start = 0x402000;
                CHECK_FALSE(find_go_module(file.source(), file.header(), file.sections, other));
                other = *place;
                other.address += 8;
                CHECK_FALSE(find_go_module(file.source(), file.header(), file.sections, other));
            }
    GoTable old = small_go_table({.version = 16});
    TestFile file;
    file.add({".gopclntab", 1, 0x500020, old.bytes()});
    file.add({".data", 1, 0x700000, go_module_data(old, 0x500020, 0x481234), 3});
    CHECK_FALSE(find_go_module(file.source(), file.header(), file.sections, *file.find()));
}

TEST_CASE("if the header has no text start, it comes from moduledata") {
    GoTable table = small_go_table({.version = 20});
    table.text_start_is_in_the_file = false;
    TestFile file;
    file.add({".gopclntab", 1, 0x500020, table.bytes()});
    file.add({".go.module", 1, 0x700000, go_module_data(table, 0x500020, 0x481234), 3});
    CHECK(file.find()->text_start == 0x401000u);
    CHECK(file.first_name() == "main.(*T).Method");
    file.sections[1].flags = 2;
    CHECK_FALSE(file.find()->text_start);
}

TEST_CASE("moduledata of a position-independent program is in its relocations") {
    GoTable table = small_go_table({});
    table.text_start_is_in_the_file = false;
    TestFile file{.type = 3};
    file.add({".data.rel.ro.gopclntab", 1, 0x500020, table.bytes()});
    // The words that contain addresses are 0 in the file.
    std::string words = go_module_data(table, 0, 0);
    for (const std::size_t word : {20, 21, 22}) words.replace(word * 8, 8, 8, '\0');
    file.add({".noptrdata", 1, 0x600000, std::string(64, '\0') + words, 3});
    file.add({".rela", 4, 0,
              relocation(table, 0x500020 + 24, 8, 0x401000) + relocation(table, 0x700000, 8, 0x500020) +
                  relocation(table, 0x600040, 8, 0x500020) + relocation(table, 0x600040 + 20 * 8, 8, 0x401020) +
                  relocation(table, 0x600040 + 22 * 8, 8, 0x401000) +
                  relocation(table, 0x600040 + 38 * 8, 8, 0x481234)});
    const auto place = file.find();
    REQUIRE(place);
    CHECK(place->text_start == 0x401000u);
    const auto module = find_go_module(file.source(), file.header(), file.sections, *place);
    REQUIRE(module);
    CHECK(module->function_data == 0x481234);
}

TEST_CASE("a damaged table and the empty section of a debug file are not found") {
    GoTable table = small_go_table({});
    TestFile file;
    file.add({".gopclntab", 8, 0x500020, table.bytes()});
    CHECK_FALSE(file.find());
    file.sections[0].type = 1;
    CHECK(file.find());
    file.bytes[file.sections[0].offset] = 0;
    CHECK_FALSE(file.find());
    TestFile cut;
    cut.add({".gopclntab", 1, 0x500020, table.bytes()});
    cut.bytes.resize(cut.sections[0].offset + 100);
    CHECK_FALSE(cut.find());
}

}  // namespace
}  // namespace flamewire::elf
