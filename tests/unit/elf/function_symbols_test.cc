// Functions of real programs compared with readelf, and symbol tables written by hand for what real programs rarely
// have.
#include "elf/function_symbols.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "elf_writer.h"
#include "real_files.h"

namespace flamewire::elf {
namespace {

using Key = std::pair<std::uint64_t, std::string>;

bool any_name(std::string_view) { return true; }

// All symbols of these types in a file, from readelf: address and name → size. An odd address is Thumb code.
std::map<Key, std::uint64_t> symbols_by_readelf(const std::string& path, const std::set<std::string>& types) {
    std::istringstream lines(output_of("readelf --wide --syms --dyn-syms '" + path + "' 2>/dev/null"));
    std::map<Key, std::uint64_t> functions;
    for (std::string line; std::getline(lines, line);) {
        std::istringstream in(line);
        std::string number, address, size, type, bind, visibility, section, name;
        in >> number >> address >> size >> type >> bind >> visibility >> section;
        if (section.starts_with("[")) in >> section >> section;  // "[<other>: 88]"
        in >> name;
        if (!types.contains(type) || section == "UND" || section == "ABS" || name.empty()) continue;
        auto& known = functions[{std::stoull(address, nullptr, 16), name.substr(0, name.find('@', 1))}];
        known = std::max<std::uint64_t>(known, std::stoull(size, nullptr, 0));
    }
    return functions;
}

std::map<Key, std::uint64_t> functions_by_readelf(const std::string& path) {
    return symbols_by_readelf(path, {"FUNC", "IFUNC"});
}

std::map<Key, std::uint64_t> as_map(const std::vector<FunctionSymbol>& functions) {
    std::map<Key, std::uint64_t> map;
    for (const FunctionSymbol& f : functions) map[{f.address | (f.thumb ? 1u : 0u), f.name}] = f.size;
    CHECK(map.size() == functions.size());
    return map;
}

TEST_CASE("functions of this program and its libraries are those of readelf") {
    for (const std::string& path : files_of_this_process()) {
        CAPTURE(path);
        const RealFile file(path);
        const auto expected = functions_by_readelf(path);
        const auto found = find_functions(file.source, file.header, file.sections, any_name, 1'000'000);
        REQUIRE(found);
        CHECK(as_map(*found) == expected);
        CHECK(std::ranges::is_sorted(*found, {}, [](const FunctionSymbol& f) { return std::tie(f.address, f.name); }));
        if (expected.size() > 10) {
            const FunctionSymbol& middle = (*found)[found->size() / 2];
            const auto one = find_functions(
                file.source, file.header, file.sections, [&](std::string_view name) { return name == middle.name; },
                10);
            REQUIRE(one);
            CHECK(std::ranges::all_of(*one, [&](const FunctionSymbol& f) { return f.name == middle.name; }));
            CHECK(std::ranges::count(*one, middle.address, &FunctionSymbol::address) == 1);
        }
    }
}

TEST_CASE("variables of this program and its libraries are those of readelf") {
    std::size_t all = 0;
    for (const std::string& path : files_of_this_process()) {
        CAPTURE(path);
        const RealFile file(path);
        const auto expected = symbols_by_readelf(path, {"OBJECT"});
        const auto found =
            find_functions(file.source, file.header, file.sections, any_name, 1'000'000, SymbolKind::object);
        REQUIRE(found);
        CHECK(as_map(*found) == expected);
        all += expected.size();
    }
    CHECK(all > 100);
}

TEST_CASE("the function at an address is the innermost of readelf's") {
    for (const std::string& path : files_of_this_process()) {
        CAPTURE(path);
        const RealFile file(path);
        const auto all = functions_by_readelf(path);
        std::size_t step = 0;
        for (const auto& [key, size] : all) {
            if (step++ % (all.size() / 10 + 1) != 0 || size < 2) continue;
            const std::uint64_t inside = (key.first & ~std::uint64_t{1}) + size / 2;
            const auto found = function_at(file.source, file.header, file.sections, inside);
            REQUIRE(found);
            REQUIRE(*found);
            CHECK(inside - (*found)->address < (*found)->size);
            CHECK(all.contains({(*found)->address | ((*found)->thumb ? 1u : 0u), (*found)->name}));
            for (const auto& [other, bytes] : all) {
                const std::uint64_t start = other.first & ~std::uint64_t{file.header.machine == 40 ? 1u : 0u};
                if (start <= inside && inside - start < bytes) CHECK(start <= (*found)->address);
            }
        }
        const auto nowhere = function_at(file.source, file.header, file.sections, ~std::uint64_t{0});
        REQUIRE(nowhere);
        CHECK_FALSE(*nowhere);
    }
}

TEST_CASE("functions of a stripped file are in .dynsym and .gnu_debugdata") {
    const ScratchFolder folder;
    folder.write("a.c",
                 "static __attribute__((noinline)) int hidden(int n) { return n * 3; }\n"
                 "int exported(int n) { return hidden(n) + 1; }\n"
                 "int chosen_now(int n) { return n; }\n"
                 "static void* choose(void) { return chosen_now; }\n"
                 "int chosen(int n) __attribute__((ifunc(\"choose\")));\n");
    folder.run(
        "gcc -O1 -fno-ipa-icf -fpic -shared -o full.so a.c && strip -o stripped.so full.so && xz -k full.so && "
        "objcopy --add-section .gnu_debugdata=full.so.xz stripped.so mini.so");
    const auto names = [&](const char* name) {
        const RealFile file(folder.file(name));
        const auto found = find_functions(file.source, file.header, file.sections, any_name, 1000);
        return found ? as_map(*found) : std::map<Key, std::uint64_t>();
    };
    const auto full = functions_by_readelf(folder.file("full.so"));
    CHECK(full.size() > functions_by_readelf(folder.file("stripped.so")).size());
    CHECK(names("full.so") == full);
    CHECK(names("mini.so") == full);
    CHECK(names("stripped.so") == functions_by_readelf(folder.file("stripped.so")));

    const RealFile file(folder.file("mini.so"));
    const auto found = find_functions(
        file.source, file.header, file.sections,
        [](std::string_view name) { return name == "hidden" || name == "chosen"; }, 2);
    REQUIRE(found);
    REQUIRE(found->size() == 2);
    for (const FunctionSymbol& f : *found) CHECK(f.ifunc == (f.name == "chosen"));

    // A damaged .gnu_debugdata costs only the names in it.
    folder.run("head -c 500 full.so.xz > cut.xz && objcopy --update-section .gnu_debugdata=cut.xz mini.so cut.so");
    CHECK(names("cut.so") == functions_by_readelf(folder.file("stripped.so")));
}

TEST_CASE("the file offset of a function holds its instructions") {
    for (const std::string& path : files_of_this_process()) {
        CAPTURE(path);
        const RealFile file(path);
        // "LOAD 0x001000 0x0000000000401000 0x… 0x0001c5 0x0001c5 R E 0x1000"
        std::istringstream lines(output_of("readelf --wide --segments '" + path + "'"));
        for (std::string line; std::getline(lines, line);) {
            std::istringstream in(line);
            std::string type;
            std::uint64_t offset = 0, vaddr = 0, physical = 0, file_size = 0, memory_size = 0;
            in >> type >> std::hex >> std::setbase(0) >> offset >> vaddr >> physical >> file_size >> memory_size;
            if (type != "LOAD") continue;
            const bool code = line.find(" R E ") != std::string::npos;
            for (const std::uint64_t at : {std::uint64_t{0}, file_size - 1}) {
                CHECK(offset_of_vaddr(file.header.segments, vaddr + at) ==
                      (code ? std::optional(offset + at) : std::nullopt));
                CHECK(offset_of_vaddr(file.header.segments, vaddr + at, 0) == offset + at);
            }
            if (memory_size > file_size) CHECK_FALSE(offset_of_vaddr(file.header.segments, vaddr + memory_size - 1, 0));
        }
    }
}

// Symbol tables without the rest of an ELF file.
struct TableFile {
    struct Entry {
        std::string name;
        std::uint64_t address = 0, size = 0;
        unsigned type = 2, section = 1;
    };

    TableFile(bool is_64, bool big_endian, std::uint16_t machine = 62) : writer{is_64, big_endian} {
        header.is_64 = is_64;
        header.big_endian = big_endian;
        header.machine = machine;
        writer.pad_to(64);
        sections.emplace_back();
    }
    void add(std::uint32_t type, const std::vector<Entry>& entries) {
        std::string names(1, '\0');
        Section table{.name = "table", .type = type, .offset = writer.out.size()};
        for (const Entry& entry : entries) {
            writer.u32(names.size());
            names += entry.name + '\0';
            if (writer.is_64) writer.number(entry.type | 0x10, 1), writer.number(0, 1), writer.u16(entry.section);
            writer.word(entry.address);
            writer.word(entry.size);
            if (!writer.is_64) writer.number(entry.type | 0x10, 1), writer.number(0, 1), writer.u16(entry.section);
        }
        table.size = writer.out.size() - table.offset;
        table.link = static_cast<std::uint32_t>(sections.size() + 1);
        sections.push_back(table);
        sections.push_back({.name = "names", .type = 3, .offset = writer.out.size(), .size = names.size()});
        writer.out += names;
    }
    [[nodiscard]] ByteSource source() const { return source_of_bytes(as_bytes_view(writer.out)); }
    [[nodiscard]] Result<std::vector<FunctionSymbol>> find(std::size_t limit = 100) const {
        return find_functions(source(), header, sections, any_name, limit);
    }
    [[nodiscard]] std::string at(std::uint64_t address) const {
        const auto found = function_at(source(), header, sections, address);
        return found && *found ? (*found)->name : "-";
    }

    Writer writer;
    Header header;
    std::vector<Section> sections;
};

const std::vector<TableFile::Entry> entries = {
    {"data", 0x2000, 8, 1},        {"imported", 0, 0, 2, 0},         {"absolute", 0x50, 0, 2, 0xfff1},
    {"outer", 0x1000, 0x100},      {"inner", 0x1040, 0x10},          {"alias", 0x1040, 0x10},
    {"assembly", 0x1200, 0},       {"copy@@GLIBC_2.14", 0x1300, 16}, {"copy@GLIBC_2.2.5", 0x1300, 16},
    {"@strange", 0x1400, 1},       {"resolver", 0x1500, 4, 10},      {"", 0x1600, 4},
    {"copy@GLIBC_2.0", 0x1308, 8}, {"a_short", 0x1040, 4},
};

TEST_CASE("kinds of symbols, in every class and byte order") {
    for (const bool is_64 : {false, true})
        for (const bool big_endian : {false, true}) {
            CAPTURE(is_64, big_endian);
            TableFile file(is_64, big_endian);
            file.add(2, entries);
            file.add(11, {{"copy", 0x1300, 16}, {"more", 0x1001, 2}, {"outer", 0x1000, 0x80}});
            const auto found = file.find();
            REQUIRE(found);
            CHECK(as_map(*found) == std::map<Key, std::uint64_t>{{{0x1000, "outer"}, 0x100},
                                                                 {{0x1001, "more"}, 2},
                                                                 {{0x1040, "a_short"}, 4},
                                                                 {{0x1040, "alias"}, 0x10},
                                                                 {{0x1040, "inner"}, 0x10},
                                                                 {{0x1200, "assembly"}, 0},
                                                                 {{0x1300, "copy"}, 16},
                                                                 {{0x1308, "copy"}, 8},
                                                                 {{0x1400, "@strange"}, 1},
                                                                 {{0x1500, "resolver"}, 4}});
            for (const FunctionSymbol& f : *found) CHECK(f.ifunc == (f.name == "resolver"));
            CHECK(file.find(10));
            CHECK(file.find(9).error().code == ErrorCode::too_large);
            CHECK(file.find(0).error().code == ErrorCode::too_large);
            CHECK(file.at(0xfff) == "-");
            CHECK(file.at(0x1000) == "outer");
            CHECK(file.at(0x1001) == "more");
            CHECK(file.at(0x1003) == "outer");
            CHECK(file.at(0x1043) == "alias");
            CHECK(file.at(0x104f) == "alias");
            CHECK(file.at(0x1050) == "outer");
            CHECK(file.at(0x1100) == "-");
            CHECK(file.at(0x1200) == "assembly");
            CHECK(file.at(0x1201) == "-");
        }
}

TEST_CASE("repeated symbols count once") {
    TableFile file(true, false);
    std::vector<TableFile::Entry> repeated(30, {"same", 0x1000, 4});
    repeated.push_back({"zero_after_them", 0x1000, 4});
    file.add(2, repeated);
    CHECK(file.find(2)->size() == 2);
    CHECK(file.find(1).error().code == ErrorCode::too_large);
}

TEST_CASE("only Arm has a Thumb bit") {
    for (const std::uint16_t machine : {std::uint16_t{40}, std::uint16_t{62}}) {
        TableFile file(false, false, machine);
        file.add(2, {{"thumb", 0x1001, 8}, {"arm", 0x1010, 8}});
        const auto found = file.find();
        REQUIRE(found);
        REQUIRE(found->size() == 2);
        CHECK((*found)[0].address == (machine == 40 ? 0x1000 : 0x1001));
        CHECK((*found)[0].thumb == (machine == 40));
        CHECK_FALSE((*found)[1].thumb);
        CHECK(file.at(0x1000) == (machine == 40 ? "thumb" : "-"));
    }
}

TEST_CASE("names of every length, and more of them than one block") {
    TableFile file(true, false);
    std::vector<TableFile::Entry> many;
    for (std::uint64_t i = 0; i < 40000; ++i) many.push_back({"function_" + std::to_string(i), 0x100000 - i * 16, 16});
    many.push_back({std::string(8192, 'b'), 1, 1});
    many.push_back({std::string(65535, 'c'), 2, 1});
    many.push_back({std::string(65536, 'd'), 3, 1});  // does not fit with its NUL
    // Longer ones before those that are found: the names are read in order.
    std::ranges::reverse(many);
    file.add(2, many);
    const auto found = file.find(50000);
    REQUIRE(found);
    CHECK(found->size() == 40002);
    CHECK((*found)[0].name.size() == 8192);
    CHECK((*found)[1].name.size() == 65535);
    CHECK(found->back().name == "function_0");
    CHECK((*found)[2].name == "function_39999");
}

TEST_CASE("damaged symbol tables are an error or give less") {
    TableFile good(true, false);
    good.add(2, entries);
    const std::size_t all = good.find()->size();

    TableFile file = good;
    file.sections[1].size += 1 << 20;
    CHECK(file.find().error().code == ErrorCode::invalid);
    file = good;
    file.sections[1].size = std::uint64_t{1} << 40;
    CHECK(file.find().error().code == ErrorCode::too_large);
    file = good;
    file.sections[1].size -= 24;
    CHECK(file.find()->size() == all - 1);
    file.sections[1].size += 23;  // a part of a symbol
    CHECK(file.find()->size() == all - 1);
    file = good;
    file.sections[2].offset = ~std::uint64_t{0} - 5;
    CHECK(file.find().error().code == ErrorCode::too_large);
    file = good;
    file.sections[2].size = 33;  // in the middle of "inner"
    CHECK(file.find()->size() == 1);
    for (const std::uint32_t link : {0u, 3u, ~0u}) {
        file = good;
        file.sections[1].link = link;
        CHECK(file.find()->empty());
    }
    file = good;
    file.sections[2].type = section_nobits;
    CHECK(file.find()->empty());
    file = good;
    file.writer.out.resize(file.writer.out.size() - 1);  // the last name has no end
    CHECK(file.find()->size() == all - 1);
}

}  // namespace
}  // namespace flamewire::elf
