// Unwind tables of ELF files that the tests write byte by byte: with a search table, with our own index, broken and
// damaged. The expected rows follow from the instructions.
#include "unwind/tables/module_tables.h"

#include <catch2/catch.hpp>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../elf_image.h"

namespace flamewire::unwind {
namespace {

using test::ElfImage;
using test::FrameWriter;
using test::Writer;

constexpr std::uint64_t base = 0x400000, text = base + 0x1000, tables_at = base + 0x8000, frames_at = tables_at + 0x400;
constexpr std::uint32_t readable = 4, executable = 5, writable = 6;
constexpr std::uint64_t allocated = 2, is_code = 6;
constexpr std::uint32_t gnu_eh_frame = 0x6474e550, arm_exidx = 0x70000001;

// Opens an image and owns everything that its tables refer to.
struct Opened {
    std::string bytes;
    bool broken = false;  // the file can no longer be read
    std::size_t reads = 0;
    std::uint64_t furthest = 0;  // the highest offset that was read
    PageCache pages{std::size_t{1} << 20};
    TableWork work;
    std::unique_ptr<ModuleTables> tables;

    explicit Opened(std::string image) : bytes(std::move(image)) {
        auto source = [this, whole = elf::source_of_bytes(as_bytes_view(bytes))](
                          std::uint64_t offset, std::size_t size) -> Result<std::string> {
            ++reads;
            furthest = std::max(furthest, offset);
            if (broken) return fail(ErrorCode::io, "broken");
            return whole(offset, size);
        };
        if (auto opened = ModuleTables::open(1, source, pages, work)) tables = std::move(*opened);
    }
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;

    std::optional<std::int64_t> cfa_at(std::uint64_t address) {
        const auto row = tables->row_at(address);
        if (!row) return std::nullopt;
        CHECK(row->start <= address);
        CHECK(address < row->end);
        return row->cfa_offset;
    }
};

// def_cfa_offset `offset`, which identifies the function.
std::string offset_is(int offset) { return {'\x0e', static_cast<char>(offset)}; }

// An image with 0x3000 bytes of code at `text` and `frames` at frames_at, with or without a search table, and with or
// without section headers.
std::string image_of(const std::string& frames, const std::string& table, bool sections, ElfImage image = ElfImage()) {
    image.load(executable, text, std::string(0x3000, '\x90'));
    std::string contents = table;
    contents.resize(0x400, '\0');
    contents += frames;
    image.load(readable, tables_at, contents);
    if (!table.empty()) image.segment(gnu_eh_frame, tables_at, table.size());
    if (sections) {
        image.section(".text", is_code, text, 0x3000);
        if (!table.empty()) image.section(".eh_frame_hdr", allocated, tables_at, table.size());
        image.section(".eh_frame", allocated, frames_at, frames.size());
    }
    return image.build();
}

// Three functions: [text, +16) has CFA offset 16, [text + 16, +32) has 32, and after a gap [text + 0x100, +0x100) has
// 48.
struct Three {
    FrameWriter frames{ElfImage().writer(), frames_at};
    std::vector<std::pair<std::uint64_t, std::uint64_t>> entries;

    Three() {
        const std::uint64_t common = frames.usual_common();
        add(common, text + 0x100, 0x100, 48);
        add(common, text, 16, 16);
        add(common, text + 16, 32, 32);
        std::sort(entries.begin(), entries.end());
    }
    void add(std::uint64_t common, std::uint64_t start, std::uint64_t size, int offset) {
        entries.emplace_back(start, frames_at + frames.function(common, start, size, offset_is(offset)));
    }
    [[nodiscard]] std::string table() const {
        return test::search_table(ElfImage().writer(), tables_at, frames_at, entries);
    }
};

void check_three(Opened& file) {
    REQUIRE(file.tables);
    CHECK(file.cfa_at(text) == 16);
    CHECK(file.cfa_at(text + 15) == 16);
    CHECK(file.cfa_at(text + 16) == 32);
    CHECK(file.cfa_at(text + 47) == 32);
    CHECK_FALSE(file.cfa_at(text + 48));
    CHECK_FALSE(file.cfa_at(text + 0xff));
    CHECK(file.cfa_at(text + 0x100) == 48);
    CHECK(file.cfa_at(text + 0x1ff) == 48);
    CHECK_FALSE(file.cfa_at(text + 0x200));
    CHECK_FALSE(file.cfa_at(text - 1));
    CHECK_FALSE(file.cfa_at(0));
    CHECK_FALSE(file.cfa_at(~std::uint64_t{0}));
}

TEST_CASE("functions are found with the linker's search table, with and without section headers") {
    for (const bool sections : {true, false}) {
        const Three three;
        Opened file(image_of(three.frames.bytes(), three.table(), sections));
        check_three(file);
        CHECK(file.tables->arch() == Arch::x86_64);
        CHECK_FALSE(file.tables->big_endian());
        CHECK(file.tables->memory_bytes() < 16384);
    }
}

TEST_CASE("functions are found with our own index if the search table is missing or unusable") {
    const Three three;
    const std::string good = three.table();
    std::vector<std::string> tables{"", good, good, good, good, good, good};
    tables[1][0] = 2;                              // an unknown version
    tables[2][8] = 0;                              // no entries
    tables[3][11] = 0x7f;                          // more entries than fit
    tables[4][3] = 0x33;                           // sdata4 became udata4, a form that linkers do not write
    std::swap(tables[5][12], tables[5][12 + 16]);  // out of order (the starts' low bytes)
    std::swap(tables[5][13], tables[5][13 + 16]);
    std::swap(tables[6][16], tables[6][16 + 8]);  // the first two refer to each other's entries
    Opened without(image_of(three.frames.bytes(), "", true));
    check_three(without);
    const std::size_t index_bytes = without.tables->memory_bytes();
    for (const std::string& table : tables) {
        CAPTURE(&table - tables.data());
        Opened file(image_of(three.frames.bytes(), table, true));
        check_three(file);
        CHECK(file.tables->memory_bytes() == index_bytes);
    }
}

TEST_CASE("a complete search table needs no index") {
    const Three three;
    Opened with(image_of(three.frames.bytes(), three.table(), true));
    Opened without(image_of(three.frames.bytes(), "", true));
    check_three(with);
    const std::size_t before = without.tables->memory_bytes();
    check_three(without);
    constexpr std::size_t window_bytes = sizeof(void*) == 8 ? 32 : 24;
    CHECK(without.tables->memory_bytes() == with.tables->memory_bytes() + 3 * 8 + window_bytes);
    CHECK(without.tables->memory_bytes() > before);
}

TEST_CASE("section headers are read once, when the search table lacks an address") {
    const Three three;
    Opened file(image_of(three.frames.bytes(), three.table(), true));
    CHECK(file.cfa_at(text + 0x100) == 48);
    CHECK(file.furthest == file.bytes.find(three.table()) / PageCache::page_size * PageCache::page_size);
    CHECK_FALSE(file.cfa_at(text + 48));
    CHECK(file.furthest > file.bytes.find(three.frames.bytes()));
    const std::size_t reads = file.reads;
    CHECK_FALSE(file.cfa_at(text + 49));
    CHECK(file.reads == reads);
}

TEST_CASE("a file that can no longer be read has no rows, each time") {
    const Three three;
    for (const std::string& table : {three.table(), std::string()}) {
        Opened file(image_of(three.frames.bytes(), table, true));
        file.broken = true;
        file.pages.forget(1);
        for (int i = 0; i < 3; ++i) CHECK_FALSE(file.cfa_at(text + 0x100));
        CHECK(file.reads < 20);
    }
}

TEST_CASE("empty functions share their start with another function") {
    FrameWriter frames{ElfImage().writer(), frames_at};
    const std::uint64_t common = frames.usual_common();
    const std::uint64_t first = frames.function(common, text, 16, offset_is(16));
    const std::uint64_t empty = frames.function(common, text, 0, offset_is(99));
    const std::vector<std::pair<std::uint64_t, std::uint64_t>> entries{{text, frames_at + first},
                                                                       {text, frames_at + empty}};
    Opened table(
        image_of(frames.bytes(), test::search_table(ElfImage().writer(), tables_at, frames_at, entries), true));
    CHECK(table.cfa_at(text) == 16);
    CHECK(table.cfa_at(text + 15) == 16);
    CHECK_FALSE(table.cfa_at(text + 16));
    Opened index(image_of(frames.bytes(), "", true));
    CHECK(index.cfa_at(text + 15) == 16);
}

TEST_CASE("a length of zero is padding in a section of known size, and otherwise the end") {
    FrameWriter frames{ElfImage().writer(), frames_at};
    frames.function(frames.usual_common(), text, 16, offset_is(16));
    frames.zero();
    frames.zero();
    frames.function(0, text + 16, 16, offset_is(32));
    Opened known(image_of(frames.bytes(), "", true));
    CHECK(known.cfa_at(text) == 16);
    CHECK(known.cfa_at(text + 16) == 32);
    // The header contains the address of .eh_frame, but no table, and there are no sections.
    Opened unknown(image_of(frames.bytes(), test::search_table(ElfImage().writer(), tables_at, frames_at, {}), false));
    CHECK(unknown.cfa_at(text) == 16);
    CHECK_FALSE(unknown.cfa_at(text + 16));
}

// Row of a file with one common entry and one function at [text, +16), both with the given content.
std::optional<FrameRow> row_of(const std::function<void(Writer&, std::uint64_t)>& common,
                               const std::function<void(Writer&, std::uint64_t)>& function, bool dwarf64 = false,
                               ElfImage image = ElfImage()) {
    FrameWriter frames{image.writer(), frames_at, false, dwarf64};
    const std::uint64_t at = frames.entry(-1, common);
    frames.entry(static_cast<std::int64_t>(at), function);
    Opened file(image_of(frames.bytes(), "", true, image));
    return file.tables->row_at(text + 5);
}

TEST_CASE("common entries of every version and with every augmentation") {
    const auto absolute = [](Writer& out, std::uint64_t) { out.word(text).word(16).raw("\x0e\x20"); };
    const auto with_data = [](Writer& out, std::uint64_t) { out.word(text).word(16).u8(3).raw("xyz\x0e\x20"); };
    const auto common = [](std::uint8_t version, std::string_view letters, std::string_view middle = {},
                           std::string_view data = {}, std::string_view before = {}) {
        return [=](Writer& out, std::uint64_t) {
            out.u8(version).raw(letters).u8(0).raw(before).u8(1).u8(0x78).u8(16).raw(middle).raw(data);
            out.raw(FrameWriter::usual_instructions);
        };
    };
    const auto good = [](const std::optional<FrameRow>& row) {
        return row && row->cfa_register == 7 && row->cfa_offset == 32 && row->registers[16].offset == -8;
    };
    CHECK(good(row_of(common(1, ""), absolute)));
    CHECK(good(row_of(common(3, ""), absolute)));
    CHECK(good(row_of(common(4, "", {}, {}, std::string_view("\x08\x00", 2)), absolute)));
    // The function's start follows a segment selector of two bytes.
    CHECK(good(row_of(common(4, "", {}, {}, "\x08\x02"),
                      [](Writer& out, std::uint64_t) { out.u16(7).word(text).word(16).raw("\x0e\x20"); })));
    // The return column is a byte in version 1, and LEB128 since (here not the shortest form).
    const auto long_column = [](Writer& out, std::uint64_t) {
        out.u8(3).u8(0).u8(1).u8(0x78).raw("\x90").u8(0).raw(FrameWriter::usual_instructions);
    };
    CHECK(good(row_of(long_column, absolute)));
    CHECK_FALSE(row_of(common(2, ""), absolute));
    CHECK_FALSE(row_of(common(5, ""), absolute));
    CHECK_FALSE(row_of(common(4, "", {}, {}, std::string_view("\x03\x00", 2)), absolute));  // addresses of 3 bytes
    // No length: the first instruction is read as one.
    CHECK(good(row_of(common(1, "z", "\0", {}), with_data)) == false);
    CHECK(good(row_of(common(1, "z", std::string_view("\0", 1)), with_data)));
    CHECK(good(row_of(common(1, "zR", std::string_view("\1\0", 2)), with_data)));
    CHECK(good(row_of(common(1, "zL", "\1\x1b"), with_data)));
    CHECK(good(row_of(common(1, "zB", std::string_view("\0", 1)), with_data)));
    CHECK(good(row_of(common(1, "zG", std::string_view("\0", 1)), with_data)));
    CHECK(good(row_of(common(1, "zPLR", std::string_view("\7\x9b\1\2\3\4\x1b\0", 8)), with_data)));
    CHECK(good(row_of(common(1, "zPR", std::string_view("\2\xff\0", 3)), with_data)));    // no personality routine
    CHECK_FALSE(row_of(common(1, "zPR", std::string_view("\3\x0f\0\0", 4)), with_data));  // of an unknown size
    CHECK(good(row_of(common(1, "eh", {}, {}, "12345678"), absolute)));
    CHECK(good(row_of(common(1, "armcc+"), absolute)));
    // An unknown letter can be skipped by the length of the data, but not if the pointer encoding follows it.
    CHECK(good(row_of(common(1, "zX", "\2??"), with_data)));
    CHECK_FALSE(row_of(common(1, "zXR", "\3??\x1b"), with_data));
    CHECK_FALSE(row_of(common(1, "X"), absolute));
    CHECK_FALSE(row_of(common(1, "R", "\x1b"), absolute));
    CHECK(row_of(common(1, "zS", std::string_view("\0", 1)), with_data)->signal_frame);
    CHECK(row_of(common(1, "S"), absolute)->signal_frame);
    CHECK_FALSE(row_of(common(1, ""), absolute)->signal_frame);
    CHECK(good(row_of(common(1, ""), absolute, true)));  // 64-bit DWARF
}

TEST_CASE("pointers in every encoding") {
    // `got` is the address of .got, `text` that of .text: the bases of data-relative and text-relative pointers.
    constexpr std::uint64_t got = tables_at + 0x300;
    const auto found = [&](std::uint8_t encoding, const std::function<void(Writer&, std::uint64_t)>& start_and_size,
                           bool big_endian = false) {
        ElfImage image(62, true, big_endian);
        FrameWriter frames{image.writer(), frames_at};
        const std::uint64_t common = frames.usual_common(encoding);
        frames.entry(static_cast<std::int64_t>(common), [&](Writer& out, std::uint64_t here) {
            start_and_size(out, here + out.out.size());
            out.u8(0).raw("\x0e\x20");
        });
        image.load(executable, text, std::string(0x3000, '\x90'));
        std::string contents(0x400, '\0');
        image.load(readable, tables_at, contents + frames.bytes());
        image.section(".text", is_code, text, 0x3000);
        image.section(".got", allocated, got, 0x20);
        image.section(".eh_frame", allocated, frames_at, frames.bytes().size());
        Opened file(image.build());
        const auto row = file.tables->row_at(text + 0x47);
        return row && row->start == text + 0x40 && row->end == text + 0x48 && row->cfa_offset == 32;
    };
    constexpr std::uint64_t start = text + 0x40;
    for (const bool big_endian : {false, true}) {
        CHECK(found(0x00, [](Writer& out, std::uint64_t) { out.word(start).word(8); }, big_endian));
        CHECK(found(0x03, [](Writer& out, std::uint64_t) { out.u32(start).u32(8); }, big_endian));
        CHECK(found(0x04, [](Writer& out, std::uint64_t) { out.number(start, 8).number(8, 8); }, big_endian));
        CHECK(found(0x0b, [](Writer& out, std::uint64_t) { out.u32(start).u32(8); }, big_endian));
        CHECK(found(0x1b, [](Writer& out, std::uint64_t here) { out.u32(start - here).u32(8); }, big_endian));
        CHECK(
            found(0x1c, [](Writer& out, std::uint64_t here) { out.number(start - here, 8).number(8, 8); }, big_endian));
        CHECK(found(0x10, [](Writer& out, std::uint64_t here) { out.word(start - here).word(8); }, big_endian));
        CHECK(found(0x3b, [](Writer& out, std::uint64_t) { out.u32(start - got).u32(8); }, big_endian));
        CHECK(found(0x2a, [](Writer& out, std::uint64_t) { out.u16(0x40).u16(8); }, big_endian));
        CHECK(found(0x1a, [](Writer& out, std::uint64_t here) { out.u16(start - here).u16(8); }, big_endian));
        CHECK(found(0x22, [](Writer& out, std::uint64_t) { out.u16(0x40).u16(8); }, big_endian));
    }
    CHECK(found(0x21, [](Writer& out, std::uint64_t) { out.raw("\xc0").u8(0).u8(8); }));  // uleb128, not shortest
    CHECK(found(0x29, [](Writer& out, std::uint64_t) { out.raw("\xc0").u8(0).u8(8); }));  // sleb128
    CHECK_FALSE(found(0x29, [](Writer& out, std::uint64_t) { out.raw("\x40").u8(8); }));  // -64
    CHECK_FALSE(found(0x9b, [](Writer& out, std::uint64_t here) { out.u32(start - here).u32(8); }));  // indirect
    CHECK_FALSE(found(0x0f, [](Writer& out, std::uint64_t) { out.u32(start).u32(8); }));
    CHECK_FALSE(found(0x6b, [](Writer& out, std::uint64_t) { out.u32(start).u32(8); }));
    CHECK_FALSE(found(0xff, [](Writer& out, std::uint64_t) { out.u32(start).u32(8); }));
    CHECK(found(0x50, [](Writer& out, std::uint64_t here) {  // aligned
        out.raw(std::string(-here & 7, '\xaa')).word(start).word(8);
    }));
}

TEST_CASE("32-bit files of both byte orders") {
    for (const bool big_endian : {false, true}) {
        const std::uint16_t machine = big_endian ? 40 : 3;
        ElfImage image(machine, false, big_endian);
        image.entry = text + 1;
        FrameWriter frames{image.writer(), frames_at};
        const std::uint64_t common = frames.usual_common();
        const std::uint64_t at = frames.function(common, text, 16, offset_is(24));
        const std::string table = test::search_table(image.writer(), tables_at, frames_at, {{text, frames_at + at}});
        for (const bool with_table : {true, false}) {
            Opened file(image_of(frames.bytes(), with_table ? table : "", true, image));
            CHECK(file.cfa_at(text + 3) == 24);
            CHECK_FALSE(file.cfa_at(text + 16));
            CHECK(file.tables->arch() == (big_endian ? Arch::arm : Arch::x86));
            CHECK(file.tables->big_endian() == big_endian);
            CHECK(file.tables->entry() == (big_endian ? text : text + 1));  // without the Thumb bit
        }
    }
}

TEST_CASE("addresses of 32-bit files wrap at 4 GiB") {
    ElfImage image(3, false);
    FrameWriter frames{image.writer(), frames_at};
    const std::uint64_t common = frames.usual_common(0x13);  // pcrel, udata4: text is below the pointer
    frames.function(common, text, 16, offset_is(24));
    Opened file(image_of(frames.bytes(), "", true, image));
    CHECK(file.cfa_at(text + 3) == 24);
}

TEST_CASE("more common entries than the cache holds, used in turn") {
    FrameWriter frames{ElfImage().writer(), frames_at};
    std::vector<std::uint64_t> commons;
    for (int i = 0; i < 40; ++i)
        commons.push_back(frames.entry(-1, [&](Writer& out, std::uint64_t) {
            out.u8(1).raw("zR").u8(0).u8(1).u8(0x78).u8(16).u8(1).u8(0x1b);
            out.u8(0x0c).u8(7).u8(static_cast<std::uint64_t>(8 + i));
        }));
    for (std::uint64_t i = 0; i < 40; ++i) frames.function(commons[i], text + 16 * i, 16);
    Opened file(image_of(frames.bytes(), "", true));
    for (int round = 0; round < 2; ++round)
        for (int i = 0; i < 40; ++i) CHECK(file.cfa_at(text + 16 * static_cast<std::uint64_t>(i)) == 8 + i);
}

TEST_CASE("a location relative to its own address") {
    FrameWriter frames{ElfImage().writer(), frames_at};
    const std::uint64_t common = frames.usual_common();
    frames.entry(static_cast<std::int64_t>(common), [](Writer& out, std::uint64_t here) {
        out.u32(text - (here + out.out.size())).u32(64).u8(0);
        out.u8(0x01);
        out.u32(text + 32 - (here + out.out.size())).raw("\x0e\x30");
    });
    Opened file(image_of(frames.bytes(), "", true));
    CHECK(file.cfa_at(text + 31) == 8);
    CHECK(file.cfa_at(text + 32) == 48);
}

std::string zstd_section(const std::string& plain, std::uint32_t kind = 2) {
    std::string packed(ZSTD_compressBound(plain.size()), '\0');
    packed.resize(ZSTD_compress(packed.data(), packed.size(), plain.data(), plain.size(), 1));
    Writer out;
    out.u32(kind).u32(0).number(plain.size(), 8).number(8, 8).raw(packed);
    return out.out;
}

// .eh_frame has [text, +16). .debug_frame has the same, [text + 0x200, +16), and three that the linker discarded.
std::string with_debug_frame(bool dwarf64, std::uint64_t flags,
                             const std::function<std::string(const std::string&)>& pack = {}) {
    ElfImage image;
    FrameWriter frames{image.writer(), frames_at};
    const std::uint64_t common = frames.usual_common();
    const std::uint64_t at = frames.function(common, text, 16, offset_is(16));
    const std::string table = test::search_table(image.writer(), tables_at, frames_at, {{text, frames_at + at}});
    FrameWriter debug{image.writer(), 0, true, dwarf64};
    const std::uint64_t other = debug.usual_common();
    debug.function(other, 0, 0x10000000, offset_is(99));
    debug.function(other, 0x40, 0x10000000, offset_is(99));
    debug.function(other, ~std::uint64_t{0}, 16, offset_is(99));
    debug.function(other, text + 0x200, 16, offset_is(80));
    debug.function(other, text, 16, offset_is(96));
    image.unloaded(".debug_frame", pack ? pack(debug.bytes()) : debug.bytes(), flags);
    return image_of(frames.bytes(), table, true, image);
}

TEST_CASE(".debug_frame adds functions that .eh_frame lacks") {
    for (const bool dwarf64 : {false, true}) {
        Opened file(with_debug_frame(dwarf64, 0));
        CHECK(file.cfa_at(text + 3) == 16);
        CHECK(file.cfa_at(text + 0x203) == 80);
        CHECK_FALSE(file.cfa_at(text + 0x210));
        CHECK_FALSE(file.cfa_at(text + 0x100));
        CHECK_FALSE(file.cfa_at(0x44));
        const std::size_t reads = file.reads;
        for (std::uint64_t i = 0; i < 100; ++i) CHECK_FALSE(file.cfa_at(text + 0x300 + i));
        CHECK(file.reads == reads);
    }
}

// An xz stream without compression: one block of stored chunks. Nothing verifies its checksums.
std::string xz_stream(const std::string& plain) {
    Writer out;
    out.raw(std::string_view("\xfd"
                             "7zXZ\0\0\0",
                             8))
        .u32(0);
    out.u8(2).u8(0).u8(0x21).u8(1).u8(22).raw(std::string_view("\0\0\0", 3)).u32(0);
    for (std::size_t at = 0; at < plain.size(); at += 0x10000) {
        const std::string chunk = plain.substr(at, 0x10000);
        out.u8(at == 0 ? 1 : 2).u8((chunk.size() - 1) >> 8).u8((chunk.size() - 1) & 0xff).raw(chunk);
    }
    out.u8(0);
    while (out.out.size() % 4 != 0) out.u8(0);
    return out.u8(0).out;
}

TEST_CASE(".debug_frame in the small ELF file of .gnu_debugdata") {
    const auto file_with = [](const std::string& debug_data) {
        ElfImage image;
        FrameWriter frames{image.writer(), frames_at};
        const std::uint64_t at = frames.function(frames.usual_common(), text, 16, offset_is(16));
        const std::string table = test::search_table(image.writer(), tables_at, frames_at, {{text, frames_at + at}});
        image.unloaded(".gnu_debugdata", debug_data);
        return image_of(frames.bytes(), table, true, image);
    };
    const std::string small = with_debug_frame(false, 0);
    Opened file(file_with(xz_stream(small)));
    CHECK(file.cfa_at(text + 3) == 16);
    CHECK_FALSE(file.cfa_at(text + 0x100));
    CHECK(file.cfa_at(text + 0x203) == 80);
    CHECK(file.tables->memory_bytes() > 100);
    for (const std::string& broken : {xz_stream(small).substr(0, 100), xz_stream("no ELF file"), std::string("7zXZ"),
                                      xz_stream(ElfImage().build())}) {
        Opened other(file_with(broken));
        CHECK(other.cfa_at(text + 3) == 16);
        CHECK_FALSE(other.cfa_at(text + 0x203));
    }
}

// With the header of the gABI or with the older one. The blocks are stored, and without a checksum, which nothing
// verifies.
std::string zlib_section(const std::string& plain, bool older) {
    Writer out;
    if (older)
        out.raw("ZLIB").raw(std::string(4, '\0')).raw(Writer{.big_endian = true}.u32(plain.size()).out);
    else
        out.u32(1).u32(0).word(plain.size()).word(1);
    const auto size = static_cast<std::uint16_t>(plain.size());
    return out.u8(0x78).u8(1).u8(1).u16(size).u16(static_cast<std::uint16_t>(~size)).raw(plain).out;
}

TEST_CASE(".debug_frame compressed with zlib") {
    constexpr std::uint64_t compressed = 0x800;
    for (const bool older : {false, true}) {
        Opened file(
            with_debug_frame(false, compressed, [&](const std::string& plain) { return zlib_section(plain, older); }));
        CHECK(file.cfa_at(text + 0x203) == 80);
        CHECK(file.cfa_at(text + 3) == 16);
        Opened cut(with_debug_frame(false, compressed, [&](const std::string& plain) {
            const std::string packed = zlib_section(plain, older);
            return packed.substr(0, packed.size() - 1);
        }));
        CHECK_FALSE(cut.cfa_at(text + 0x203));
    }
}

TEST_CASE(".debug_frame compressed with zstd") {
    constexpr std::uint64_t compressed = 0x800;
    Opened good(with_debug_frame(false, compressed, [](const std::string& plain) { return zstd_section(plain); }));
    CHECK(good.cfa_at(text + 0x203) == 80);
    CHECK(good.cfa_at(text + 3) == 16);
    const auto refused = [&](const std::function<std::string(const std::string&)>& pack) {
        Opened file(with_debug_frame(false, compressed, pack));
        return !file.cfa_at(text + 0x203) && file.cfa_at(text + 3) == 16;
    };
    CHECK(refused([](const std::string& plain) { return zstd_section(plain, 1); }));  // the number of zlib
    CHECK(refused([](const std::string& plain) {  // a size that differs from the content's
        std::string packed = zstd_section(plain);
        ++packed[8];
        return packed;
    }));
    CHECK(refused([](const std::string& plain) {  // a size beyond all limits
        std::string packed = zstd_section(plain);
        packed[13] = 1;
        return packed;
    }));
    CHECK(refused([](const std::string& plain) { return zstd_section(plain).substr(0, 60); }));
    CHECK(refused([](const std::string& plain) { return zstd_section(plain) + "more"; }));
    CHECK(refused([](const std::string&) { return std::string("short"); }));
    CHECK(refused([](const std::string& plain) {  // a frame of a format that is not used
        std::string packed = zstd_section(plain);
        packed[24] = '\x25';
        return packed;
    }));
}

TEST_CASE("modules whose addresses span more than 4 GiB") {
    ElfImage image;
    constexpr std::uint64_t far = 0x3'0000'0000;
    FrameWriter debug{image.writer(), 0, true};
    const std::uint64_t common = debug.usual_common();
    debug.function(common, far, 16, offset_is(32));
    debug.function(common, far - 16, 16, offset_is(24));
    debug.function(common, text, 16, offset_is(16));
    debug.function(common, 0x1'ffff'fff8, 16, offset_is(48));  // crosses a boundary of 4 GiB
    image.load(executable, text, std::string(64, '\x90'));
    image.load(executable, 0x1'ffff'fff8, std::string(64, '\x90'));
    image.load(executable, far - 16, std::string(64, '\x90'));
    image.unloaded(".debug_frame", debug.bytes());
    Opened file(image.build());
    CHECK(file.cfa_at(text) == 16);
    CHECK(file.cfa_at(far - 1) == 24);
    CHECK(file.cfa_at(far) == 32);
    CHECK(file.cfa_at(0x1'ffff'ffff) == 48);
    CHECK(file.cfa_at(0x2'0000'0007) == 48);
    CHECK_FALSE(file.cfa_at(0x2'0000'0008));
    CHECK_FALSE(file.cfa_at(far + 16));
    CHECK_FALSE(file.cfa_at(text + 16));
}

TEST_CASE("an object file's sections start at 0, and so do functions") {
    ElfImage image;
    image.type = 1;
    FrameWriter debug{image.writer(), 0, true}, frames{image.writer(), 0};
    debug.function(debug.usual_common(), 0, 16, offset_is(24));
    frames.function(frames.usual_common(), 0x500, 16, offset_is(32));
    image.unloaded(".debug_frame", debug.bytes());
    image.unloaded(".eh_frame", frames.bytes(), allocated);
    image.unloaded(".text", std::string(64, '\x90'), is_code);
    Opened file(image.build());
    CHECK(file.cfa_at(7) == 24);
    CHECK(file.cfa_at(0x507) == 32);
}

TEST_CASE("a function at 0 in .debug_frame is one that the linker discarded") {
    ElfImage image;
    image.load(executable, 0, std::string(0x100, '\x90'));
    FrameWriter debug{image.writer(), 0, true};
    const std::uint64_t common = debug.usual_common();
    debug.function(common, 0, 0x1000, offset_is(24));
    debug.function(common, 0x40, 16, offset_is(32));
    image.unloaded(".debug_frame", debug.bytes());
    Opened file(image.build());
    CHECK_FALSE(file.cfa_at(7));
    CHECK(file.cfa_at(0x40) == 32);
}

TEST_CASE("bytes of segments that are not writable") {
    ElfImage image;
    std::string code;
    for (int i = 0; i < 0x2000; ++i) code.push_back(static_cast<char>(i / 16));
    image.load(executable, text + 8, code);
    image.load(writable, text + 0x10000, "changes");
    Opened file(image.build());
    std::array<std::byte, 32> out{};
    CHECK(file.tables->read(text + 8, out));
    CHECK(out[15] == std::byte{0});
    CHECK(out[16] == std::byte{1});
    // Across the end of a page of the file.
    REQUIRE(file.tables->read(text + 8 + 0xff8, out));
    CHECK(out[7] == std::byte{0xff});
    CHECK(out[8] == std::byte{0x00});
    CHECK(out[24] == std::byte{0x01});
    CHECK(file.tables->read(text + 8 + 0x1fe0, out));
    CHECK_FALSE(file.tables->read(text + 8 + 0x1fe1, out));
    CHECK_FALSE(file.tables->read(text + 7, out));
    CHECK_FALSE(file.tables->read(text + 0x10000, std::span(out).first(4)));
    CHECK_FALSE(file.tables->read(0, std::span(out).first(1)));
    CHECK_FALSE(file.tables->read(~std::uint64_t{0} - 3, out));
    file.broken = true;
    CHECK(file.tables->read(text + 8, out));  // read before
    file.pages.forget(1);
    CHECK_FALSE(file.tables->read(text + 8, out));
}

TEST_CASE("some_functions() samples the whole table") {
    ElfImage image;
    FrameWriter frames{image.writer(), frames_at};
    const std::uint64_t common = frames.usual_common();
    std::vector<std::pair<std::uint64_t, std::uint64_t>> entries;
    for (std::uint64_t i = 0; i < 100; ++i)
        entries.emplace_back(text + 32 * i, frames_at + frames.function(common, text + 32 * i, 16 + i % 16));
    const std::string table = test::search_table(image.writer(), tables_at, frames_at, entries);
    for (const std::string& used : {table, std::string()}) {
        Opened file(image_of(frames.bytes(), used, true));
        const auto four = file.tables->some_functions(4);
        REQUIRE(four.size() == 4);
        for (std::size_t i = 0; i < 4; ++i) {
            const std::uint64_t expected = 12 + 25 * i;  // the middles of four quarters
            CHECK(four[i].start == text + 32 * expected);
            CHECK(four[i].size == 16 + expected % 16);
        }
        CHECK(file.tables->some_functions(1000).size() == 100);
        CHECK(file.tables->some_functions(0).empty());
    }
    ElfImage debug_only;
    FrameWriter debug{debug_only.writer(), 0, true};
    debug.function(debug.usual_common(), text, 24);
    debug_only.load(executable, text, std::string(64, '\x90'));
    debug_only.unloaded(".debug_frame", debug.bytes());
    Opened file(debug_only.build());
    REQUIRE(file.tables->some_functions(8).size() == 1);
    CHECK(file.tables->some_functions(8)[0].size == 24);
}

TEST_CASE("ARM's exception index adds functions that other tables lack") {
    for (const bool sections : {true, false}) {
        ElfImage image(40, false, false);
        Writer index = image.writer();
        // text: pop {r4, r14} (short form); text + 0x20: cannot be unwound; text + 0x40: the end.
        index.u32((text - tables_at) & 0x7fffffff).u32(0x80a8b0b0);
        index.u32((text + 0x20 - (tables_at + 8)) & 0x7fffffff).u32(1);
        index.u32((text + 0x40 - (tables_at + 16)) & 0x7fffffff).u32(1);
        image.load(executable, text, std::string(0x100, '\0'));
        const std::size_t size = index.out.size();
        index.u32((text + 0x80 - (tables_at + 24)) & 0x7fffffff).u32(1);  // does not belong to the table
        image.load(readable, tables_at, index.out);
        if (sections) {
            image.section(".text", is_code, text, 0x100);
            image.section(".ARM.exidx", allocated, tables_at, size, arm_exidx);
        } else {
            image.segment(arm_exidx, tables_at, size);
        }
        FrameWriter debug{image.writer(), 0, true};
        debug.function(debug.usual_common(), text + 0x10, 16, offset_is(40));
        if (sections) image.unloaded(".debug_frame", debug.bytes());
        Opened file(image.build());
        const auto row = file.tables->row_at(text + 8);
        REQUIRE(row);
        CHECK(row->cfa_register == 13);
        CHECK(row->cfa_offset == 8);
        CHECK(row->registers[14].offset == -4);
        CHECK(file.cfa_at(text + 0x14) == (sections ? 40 : 8));
        CHECK_FALSE(file.tables->row_at(text + 0x28));
        CHECK_FALSE(file.tables->row_at(text - 4));
        const auto functions = sections ? std::vector<CodeRange>() : file.tables->some_functions(10);
        if (!sections) {
            REQUIRE(functions.size() == 2);
            CHECK(functions[0].start == text);
            CHECK(functions[0].size == 0x20);
            CHECK(functions[1].start == text + 0x20);
        }
    }
}

TEST_CASE("a separate debug file describes tables that it does not contain") {
    const Three three;
    for (const std::uint32_t section_type : {1u, 8u}) {  // SHT_PROGBITS, SHT_NOBITS
        ElfImage image;
        image.load(executable, text, std::string(0x3000, '\x90'));
        std::string contents = three.table();
        contents.resize(0x400);
        contents += three.frames.bytes();
        // In place of the tables, the file has other bytes or none.
        image.load(readable, tables_at, section_type == 8 ? std::string(contents.size(), '\x01') : contents);
        image.segment(gnu_eh_frame, tables_at, 0x24);
        image.section(".eh_frame_hdr", allocated, tables_at, 0x24, section_type);
        image.section(".eh_frame", allocated, frames_at, three.frames.bytes().size(), section_type);
        // Thread-local storage has addresses that other sections have, too.
        image.section(".tbss", allocated | 0x403, tables_at, 0x1000, 8);
        Opened file(image.build());
        CHECK(file.cfa_at(text) == (section_type == 1 ? std::optional<std::int64_t>(16) : std::nullopt));
        CHECK(file.tables->some_functions(4).empty() == (section_type == 8));
    }
    ElfImage arm(40, false);
    Writer index = arm.writer();
    index.u32((text - tables_at) & 0x7fffffff).u32(0x80a8b0b0);
    arm.load(executable, text, std::string(0x100, '\0'));
    arm.load(readable, tables_at, index.out);
    arm.segment(arm_exidx, tables_at, index.out.size());
    Opened whole(arm.build());
    CHECK(whole.tables->row_at(text + 8));
    arm.section(".ARM.exidx", allocated, tables_at, index.out.size(), 8);
    Opened separate(arm.build());
    CHECK_FALSE(separate.tables->row_at(text + 8));
}

TEST_CASE("files that are not ELF files, and files without tables") {
    CHECK_FALSE(Opened("no ELF file").tables);
    CHECK_FALSE(Opened("").tables);
    CHECK_FALSE(Opened(ElfImage(8).build()).tables);  // MIPS
    Opened bare(ElfImage().build());
    REQUIRE(bare.tables);
    CHECK_FALSE(bare.cfa_at(text));
    CHECK(bare.tables->some_functions(4).empty());
    CHECK(Opened(ElfImage(183).build()).tables->arch() == Arch::aarch64);
}

TEST_CASE("damaged files never cause more than missing rows") {
    const Three three;
    std::vector<std::string> images{image_of(three.frames.bytes(), three.table(), true),
                                    image_of(three.frames.bytes(), "", true),
                                    image_of(three.frames.bytes(), three.table(), false), with_debug_frame(false, 0)};
    std::size_t rows = 0;
    const auto check_image = [&](const std::string& image) {
        Opened file(image);
        if (!file.tables) return;
        for (const std::uint64_t address : {text, text + 16, text + 0x100, text + 0x203, std::uint64_t{0}})
            rows += file.tables->row_at(address).has_value() ? 1 : 0;
        rows += file.tables->some_functions(3).size();
        std::array<std::byte, 8> out{};
        (void)file.tables->read(text, out);
        CHECK(file.tables->memory_bytes() < 1 << 20);
    };
    for (const std::string& image : images) {
        for (std::size_t at = 0; at < image.size(); ++at) {
            // Only bytes that carry information; the rest is code.
            if (image[at] == '\x90' || (image[at] == '\0' && at % 16 != 3)) continue;
            for (const int flip : {0x01, 0x80, 0xff}) {
                std::string damaged = image;
                damaged[at] = static_cast<char>(damaged[at] ^ flip);
                check_image(damaged);
            }
        }
        for (std::size_t size = 0; size < image.size(); size += 37) check_image(image.substr(0, size));
    }
    CHECK(rows > 1000);
}

}  // namespace
}  // namespace flamewire::unwind
