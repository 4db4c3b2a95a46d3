// ELF files written byte by byte from the tables of the gABI, in both classes and byte orders, intact and damaged.
#include "elf/elf_file.h"

#include <catch2/catch.hpp>

#include <string>

#include "elf_writer.h"

namespace flamewire::elf {
namespace {

constexpr std::size_t notes_at = 0x200, names_at = 0x300, sections_at = 0x400;
const std::string build_id("\x01\x02\xfe\xff\x00\x10\x20\x30", 8);
const std::string names("\0.shstrtab\0.note.gnu.build-id\0.text\0", 36);

std::string notes(bool big_endian) {
    Writer out{true, big_endian};
    out.u32(5);  // another note before it: name "Other", 3 bytes of content, both padded to 4
    out.u32(3);
    out.u32(3);
    out.out += std::string("Other\0\0\0", 8) + std::string("abc\0", 4);
    out.u32(4);
    out.u32(build_id.size());
    out.u32(3);
    out.out += std::string("GNU\0", 4) + build_id;
    return out.out;
}

struct Shape {
    bool is_64 = true, big_endian = false;
    bool note_segment = true;
    bool extended = false;  // the counts are in section 0
};

std::string elf_bytes(const Shape& shape) {
    Writer out{shape.is_64, shape.big_endian};
    out.out =
        "\x7f"
        "ELF";
    out.out.push_back(shape.is_64 ? 2 : 1);
    out.out.push_back(shape.big_endian ? 2 : 1);
    out.out.push_back(1);
    out.pad_to(16);
    out.u16(3);   // ET_DYN
    out.u16(40);  // EM_ARM
    out.u32(1);
    out.word(0x10540);
    out.word(shape.is_64 ? 64 : 52);
    out.word(sections_at);
    out.u32(0);
    out.u16(shape.is_64 ? 64 : 52);
    out.u16(shape.is_64 ? 56 : 32);
    out.u16(shape.note_segment ? 3 : 2);
    out.u16(shape.is_64 ? 64 : 40);
    out.u16(shape.extended ? 0 : 4);
    out.u16(shape.extended ? 0xffff : 1);
    write_segment(out, 1, 4, 0, 0x10000, 0x540, 0x540);
    write_segment(out, 1, 5, 0x540, 0x11540, 0x2000, 0x2000);
    if (shape.note_segment) write_segment(out, 4, 4, notes_at, 0x10200, notes(false).size(), notes(false).size());
    out.pad_to(notes_at);
    out.out += notes(shape.big_endian);
    out.pad_to(names_at);
    out.out += names;
    out.pad_to(sections_at);
    write_section(out, 0, 0, 0, 0, 0, shape.extended ? 4 : 0, shape.extended ? 1 : 0);
    write_section(out, 1, 3, 0, 0, names_at, names.size());
    write_section(out, 11, 7, 2, 0x10200, notes_at, notes(false).size());
    write_section(out, 30, 1, 6, 0x11540, 0x540, 0x2000);
    return out.out;
}

std::vector<Shape> all_shapes() {
    std::vector<Shape> shapes;
    for (int bits = 0; bits < 16; ++bits)
        shapes.push_back({(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0});
    return shapes;
}

TEST_CASE("headers, sections and build-id of every class and byte order") {
    for (const Shape& shape : all_shapes()) {
        CAPTURE(shape.is_64, shape.big_endian, shape.note_segment, shape.extended);
        const std::string file = elf_bytes(shape);
        const ByteSource source = source_of_bytes(as_bytes_view(file));
        const auto header = read_header(source);
        REQUIRE(header);
        CHECK(header->is_64 == shape.is_64);
        CHECK(header->big_endian == shape.big_endian);
        CHECK(header->type == 3);
        CHECK(header->machine == 40);
        REQUIRE(header->segments.size() == (shape.note_segment ? 3u : 2u));
        CHECK(header->segments[1].type == segment_load);
        CHECK(header->segments[1].flags == 5);
        CHECK(header->segments[1].offset == 0x540);
        CHECK(header->segments[1].vaddr == 0x11540);
        CHECK(header->segments[1].file_size == 0x2000);
        CHECK(header->segments[1].memory_size == 0x2000);

        const auto sections = read_sections(source, *header);
        REQUIRE(sections);
        REQUIRE(sections->size() == 4);
        CHECK((*sections)[1].name == ".shstrtab");
        CHECK((*sections)[2].name == ".note.gnu.build-id");
        CHECK((*sections)[3].name == ".text");
        CHECK((*sections)[3].flags == 6);
        CHECK((*sections)[3].address == 0x11540);
        CHECK((*sections)[3].offset == 0x540);
        CHECK((*sections)[3].size == 0x2000);

        const auto id = read_build_id(source, *header);
        REQUIRE(id);
        CHECK(*id == build_id);
    }
}

TEST_CASE("usual files need few reads") {
    const std::string file = elf_bytes({});
    int reads = 0;
    const ByteSource counting = [&](std::uint64_t offset, std::size_t size) {
        ++reads;
        return source_of_bytes(as_bytes_view(file))(offset, size);
    };
    const auto header = read_header(counting);
    REQUIRE(header);
    CHECK(reads == 1);
    REQUIRE(read_build_id(counting, *header));
    CHECK(reads == 2);
}

TEST_CASE("a truncated file is an error or gives less, never more") {
    for (const Shape& shape : all_shapes()) {
        const std::string file = elf_bytes(shape);
        for (std::size_t size = 0; size < file.size(); ++size) {
            const ByteSource source = source_of_bytes(as_bytes_view(file).subspan(0, size));
            const auto header = read_header(source);
            if (!header) {
                CHECK(header.error().code == ErrorCode::invalid);
                continue;
            }
            CHECK_FALSE(read_sections(source, *header));  // the section headers are at the end of the file
            (void)read_build_id(source, *header);
        }
    }
}

TEST_CASE("each byte damaged, one at a time") {
    for (const Shape& shape : all_shapes()) {
        const std::string good = elf_bytes(shape);
        for (std::size_t i = 0; i < good.size(); ++i) {
            std::string file = good;
            file[i] = static_cast<char>(0xff);
            const ByteSource source = source_of_bytes(as_bytes_view(file));
            const auto header = read_header(source);
            if (!header) continue;
            (void)read_sections(source, *header);
            (void)read_build_id(source, *header);
        }
    }
    SUCCEED();
}

TEST_CASE("files that are not ELF cause an error") {
    for (const std::string& text : {std::string(),
                                    std::string("\x7f"
                                                "EL"),
                                    std::string("#!/bin/sh\n" + std::string(100, ' '))})
        CHECK(read_header(source_of_bytes(as_bytes_view(text))).error().message == "not an ELF file");
}

TEST_CASE("notes without a build-id, and notes with a wrong size") {
    CHECK(build_id_of_notes({}, false).empty());
    CHECK(build_id_of_notes(as_bytes_view(notes(false)), false) == build_id);
    CHECK(build_id_of_notes(as_bytes_view(notes(true)), true) == build_id);
    CHECK(build_id_of_notes(as_bytes_view(notes(true)), false).empty());
    const std::string first_only = notes(false).substr(0, 24);
    CHECK(build_id_of_notes(as_bytes_view(first_only), false).empty());
    std::string huge = notes(false);
    huge.replace(4, 4, "\xff\xff\xff\xff");
    CHECK(build_id_of_notes(as_bytes_view(huge), false).empty());
}

TEST_CASE("addresses to file offsets, by sections") {
    const std::vector<Section> sections = {{".debug_info", 1, 0, 0, 0x5000, 0x1000},
                                           {".bss", 8, 3, 0x20000, 0x3000, 0x1000},
                                           {".text", 1, 6, 0x11540, 0x540, 0x100},
                                           {".data", 1, 3, 0x11640, 0x700, 0x80}};
    CHECK(offset_of_address(sections, 0x11540, 1) == 0x540u);
    CHECK(offset_of_address(sections, 0x11550, 0xf0) == 0x550u);
    CHECK_FALSE(offset_of_address(sections, 0x11550, 0xf1));
    CHECK(offset_of_address(sections, 0x11640, 0x80) == 0x700u);
    CHECK_FALSE(offset_of_address(sections, 0x116c0, 1));
    CHECK_FALSE(offset_of_address(sections, 0x1153f, 1));
    CHECK_FALSE(offset_of_address(sections, 0x20000, 1));  // no bytes in the file
    CHECK_FALSE(offset_of_address(sections, 0x10, 1));     // not loaded
}

TEST_CASE("file offsets to virtual addresses") {
    // The layout of lld: the text segment starts in the middle of a file page, and its vaddr is one page further.
    const std::vector<Segment> segments = {
        {1, 4, 0, 0x10000, 0x540, 0x540},
        {1, 5, 0x540, 0x11540, 0x2000, 0x2000},
        {6, 4, 0x40, 0x10040, 0x100, 0x100},
    };
    CHECK(vaddr_of_offset(segments, 0x10, 4096) == 0x10010u);
    CHECK(vaddr_of_offset(segments, 0x540, 4096) == 0x11540u);
    CHECK(vaddr_of_offset(segments, 0x2000, 4096) == 0x13000u);
    CHECK(vaddr_of_offset(segments, 0x253f, 4096) == 0x1353fu);
    // After the end of the text, but on its last page; then beyond that.
    CHECK(vaddr_of_offset(segments, 0x2fff, 4096) == 0x13fffu);
    CHECK_FALSE(vaddr_of_offset(segments, 0x3000, 4096));
    // A segment's first page is mapped from the beginning of the page.
    const std::vector<Segment> text_only = {{1, 5, 0x540, 0x11540, 0x2000, 0x2000}};
    CHECK(vaddr_of_offset(text_only, 0x500, 4096) == 0x11500u);
    CHECK_FALSE(vaddr_of_offset(text_only, 0x500, 0));
    // A larger page maps more of the file with the segment: 0x540 + 0x2000 ends in the first 16 KiB.
    for (const std::uint64_t page : {16'384, 65'536}) {
        CHECK(vaddr_of_offset(text_only, 0, page) == 0x11000u);
        CHECK(vaddr_of_offset(text_only, page - 1, page) == 0x11000u + page - 1);
        CHECK_FALSE(vaddr_of_offset(text_only, page, page));
        // Bytes that another segment contains belong to that segment.
        CHECK(vaddr_of_offset(segments, 0x53f, page) == 0x1053fu);
        CHECK(vaddr_of_offset(segments, 0x540, page) == 0x11540u);
    }
}

}  // namespace
}  // namespace flamewire::elf
