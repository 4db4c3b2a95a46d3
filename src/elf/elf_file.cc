#include "elf/elf_file.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/byte_reader.h"
#include "base/file.h"

namespace flamewire::elf {
namespace {

// One read of this size gets the file header and, in all files that linkers write, the program headers.
constexpr std::size_t first_read_bytes = 4096;
// Far above what linkers write, and low enough to bound memory and time.
constexpr std::uint64_t max_sections = 1u << 18;
constexpr std::uint64_t max_table_bytes = 64u << 20;
constexpr std::uint64_t max_note_bytes = 64u << 10;

constexpr std::uint32_t segment_note = 4;         // PT_NOTE
constexpr std::uint32_t section_note = 7;         // SHT_NOTE
constexpr std::uint64_t section_allocated = 2;    // SHF_ALLOC
constexpr std::uint32_t note_build_id = 3;        // NT_GNU_BUILD_ID
constexpr std::uint16_t extended_count = 0xffff;  // PN_XNUM and SHN_XINDEX: the value is in section 0

// Reads fields in the byte order and word size of one file.
class FieldReader : public ByteReader {
public:
    FieldReader(Bytes bytes, bool is_64, bool big_endian) : ByteReader(bytes, byte_order(big_endian)), is_64_(is_64) {}

    std::uint64_t word() { return is_64_ ? u64() : u32(); }

private:
    bool is_64_;
};

// A section header as in the file: the name is still an offset.
struct RawSection {
    std::uint32_t name = 0, info = 0;
    Section section;
};

std::size_t section_header_bytes(const Header& header) { return header.is_64 ? 64 : 40; }

RawSection parse_section(Bytes bytes, const Header& header) {
    FieldReader in(bytes, header.is_64, header.big_endian);
    RawSection raw;
    raw.name = in.u32();
    raw.section.type = in.u32();
    raw.section.flags = in.word();
    raw.section.address = in.word();
    raw.section.offset = in.word();
    raw.section.size = in.word();
    raw.section.link = in.u32();
    raw.info = in.u32();
    return raw;
}

Result<RawSection> read_section_zero(const ByteSource& source, const Header& header) {
    const std::string bytes =
        TRY(read_exactly(source, header.section_offset, section_header_bytes(header), "section headers"));
    return parse_section(as_bytes_view(bytes), header);
}

Segment parse_segment(Bytes bytes, const Header& header) {
    FieldReader in(bytes, header.is_64, header.big_endian);
    Segment segment;
    segment.type = in.u32();
    if (header.is_64) segment.flags = in.u32();
    segment.offset = in.word();
    segment.vaddr = in.word();
    in.word();  // p_paddr
    segment.file_size = in.word();
    segment.memory_size = in.word();
    if (!header.is_64) segment.flags = in.u32();
    return segment;
}

Result<std::vector<Segment>> read_segments(const ByteSource& source, const Header& header, const std::string& start,
                                           std::uint64_t offset, std::uint64_t entry_size, std::uint64_t count) {
    const std::uint64_t needed = header.is_64 ? 56 : 32;
    if (count == 0) return std::vector<Segment>{};
    if (entry_size < needed) return fail(ErrorCode::invalid, "ELF program headers have an impossible size");
    const std::uint64_t size = entry_size * count;  // both 16-bit, except a PN_XNUM count, which is checked
    std::string own;
    Bytes table = as_bytes_view(start);
    if (offset <= table.size() && size <= table.size() - offset) {
        table = table.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
    } else {
        own = TRY(read_exactly(source, offset, size, "program headers"));
        table = as_bytes_view(own);
    }
    std::vector<Segment> segments;
    segments.reserve(static_cast<std::size_t>(count));
    for (std::uint64_t i = 0; i < count; ++i)
        segments.push_back(parse_segment(
            table.subspan(static_cast<std::size_t>(i * entry_size), static_cast<std::size_t>(needed)), header));
    return segments;
}

Result<std::vector<RawSection>> read_raw_sections(const ByteSource& source, const Header& header,
                                                  std::uint64_t& names_index) {
    std::uint64_t count = header.section_count;
    names_index = header.section_names;
    if (header.section_offset == 0) return std::vector<RawSection>{};
    const std::uint64_t needed = section_header_bytes(header);
    if (header.section_entry_size < needed)
        return fail(ErrorCode::invalid, "ELF section headers have an impossible size");
    if (count == 0 || names_index == extended_count) {
        const RawSection zero = TRY(read_section_zero(source, header));
        if (count == 0) count = zero.section.size;
        if (names_index == extended_count) names_index = zero.section.link;
    }
    if (count > max_sections) return fail(ErrorCode::invalid, "ELF file with an impossible number of sections");
    const std::string table =
        TRY(read_exactly(source, header.section_offset, count * header.section_entry_size, "section headers"));
    std::vector<RawSection> sections;
    sections.reserve(static_cast<std::size_t>(count));
    for (std::uint64_t i = 0; i < count; ++i)
        sections.push_back(
            parse_section(as_bytes_view(table).subspan(static_cast<std::size_t>(i * header.section_entry_size),
                                                       static_cast<std::size_t>(needed)),
                          header));
    return sections;
}

// The build-id in the notes at `offset`. Empty for a range outside the file: debug files that were split off keep the
// original program headers.
Result<std::string> build_id_at(const ByteSource& source, std::uint64_t offset, std::uint64_t size, bool big_endian) {
    if (size == 0 || offset > std::uint64_t{std::numeric_limits<std::int64_t>::max()} - max_note_bytes)
        return std::string();
    const std::string notes = TRY(source(offset, static_cast<std::size_t>(std::min(size, max_note_bytes))));
    return build_id_of_notes(as_bytes_view(notes), big_endian);
}

}  // namespace

ByteSource source_of_fd(int fd) {
    return [fd](std::uint64_t offset, std::size_t size) { return read_range(fd, offset, size); };
}

ByteSource source_of_bytes(Bytes bytes) {
    return [bytes](std::uint64_t offset, std::size_t size) -> Result<std::string> {
        if (offset >= bytes.size()) return std::string();
        const std::size_t start = static_cast<std::size_t>(offset);
        return std::string(as_text(bytes.subspan(start, std::min(size, bytes.size() - start))));
    };
}

Result<std::string> read_exactly(const ByteSource& source, std::uint64_t offset, std::uint64_t size, const char* what) {
    // In steps, so that a header with wrong sizes costs no more memory than the file has bytes.
    constexpr std::uint64_t step = 256u << 10;
    if (size > max_table_bytes || offset > std::uint64_t{std::numeric_limits<std::int64_t>::max()} - size)
        return fail(ErrorCode::invalid, std::string("ELF ") + what + " lie outside the file");
    std::string bytes;
    while (bytes.size() < size) {
        const std::uint64_t wanted = std::min(step, size - bytes.size());
        std::string part = TRY(source(offset + bytes.size(), static_cast<std::size_t>(wanted)));
        if (part.size() < wanted) return fail(ErrorCode::invalid, std::string("ELF ") + what + " lie outside the file");
        if (bytes.empty())
            bytes = std::move(part);
        else
            bytes += part;
    }
    return bytes;
}

Result<Header> read_header(const ByteSource& source) {
    const std::string start = TRY(source(0, first_read_bytes));
    if (start.size() < 16 || !start.starts_with("\x7f"
                                                "ELF"))
        return fail(ErrorCode::invalid, "not an ELF file");
    const char file_class = start[4], byte_order = start[5];
    if ((file_class != 1 && file_class != 2) || (byte_order != 1 && byte_order != 2))
        return fail(ErrorCode::invalid, "ELF file of an unknown class or byte order");
    Header header;
    header.is_64 = file_class == 2;
    header.big_endian = byte_order == 2;
    FieldReader in(as_bytes_view(start).subspan(16), header.is_64, header.big_endian);
    header.type = in.u16();
    header.machine = in.u16();
    in.u32();   // e_version
    in.word();  // e_entry
    const std::uint64_t segment_offset = in.word();
    header.section_offset = in.word();
    in.u32();  // e_flags
    in.u16();  // e_ehsize
    const std::uint16_t segment_entry_size = in.u16();
    std::uint64_t segment_count = in.u16();
    header.section_entry_size = in.u16();
    header.section_count = in.u16();
    header.section_names = in.u16();
    if (!in.ok()) return fail(ErrorCode::invalid, "ELF file that ends within its header");
    if (segment_count == extended_count) {
        segment_count = TRY(read_section_zero(source, header)).info;
        if (segment_count > max_sections)
            return fail(ErrorCode::invalid, "ELF file with an impossible number of segments");
    }
    header.segments = TRY(read_segments(source, header, start, segment_offset, segment_entry_size, segment_count));
    return header;
}

Result<std::vector<Section>> read_sections(const ByteSource& source, const Header& header) {
    std::uint64_t names_index = 0;
    std::vector<RawSection> raw = TRY(read_raw_sections(source, header, names_index));
    std::string names;
    if (names_index < raw.size() && raw[static_cast<std::size_t>(names_index)].section.type != section_nobits) {
        const Section& table = raw[static_cast<std::size_t>(names_index)].section;
        names = TRY(read_exactly(source, table.offset, table.size, "section names"));
    }
    std::vector<Section> sections;
    sections.reserve(raw.size());
    for (RawSection& entry : raw) {
        if (entry.name < names.size()) {
            const std::size_t end = names.find('\0', entry.name);
            entry.section.name = names.substr(entry.name, end == std::string::npos ? end : end - entry.name);
        }
        sections.push_back(std::move(entry.section));
    }
    return sections;
}

Result<std::string> read_build_id(const ByteSource& source, const Header& header) {
    for (const Segment& segment : header.segments) {
        if (segment.type != segment_note) continue;
        std::string id = TRY(build_id_at(source, segment.offset, segment.file_size, header.big_endian));
        if (!id.empty()) return id;
    }
    std::uint64_t names_index = 0;
    for (const RawSection& raw : TRY(read_raw_sections(source, header, names_index))) {
        if (raw.section.type != section_note) continue;
        std::string id = TRY(build_id_at(source, raw.section.offset, raw.section.size, header.big_endian));
        if (!id.empty()) return id;
    }
    return std::string();
}

std::optional<std::uint64_t> offset_of_address(const std::vector<Section>& sections, std::uint64_t address,
                                               std::uint64_t size) {
    for (const Section& section : sections) {
        if ((section.flags & section_allocated) == 0 || section.type == section_nobits) continue;
        if (address < section.address || address - section.address >= section.size) continue;
        const std::uint64_t from_start = address - section.address;
        if (section.size - from_start >= size) return section.offset + from_start;
    }
    return std::nullopt;
}

std::string build_id_of_notes(Bytes notes, bool big_endian) {
    FieldReader in(notes, true, big_endian);
    const auto padding = [](std::uint32_t size) { return static_cast<std::size_t>(-size & 3u); };
    while (in.remaining() >= 12) {
        const std::uint32_t name_size = in.u32();
        const std::uint32_t content_size = in.u32();
        const std::uint32_t type = in.u32();
        const Bytes name = in.bytes(name_size);
        in.skip(padding(name_size));
        const Bytes content = in.bytes(content_size);
        if (!in.ok()) break;
        if (type == note_build_id && as_text(name) == std::string_view("GNU\0", 4))
            return std::string(as_text(content));
        in.skip(std::min(padding(content_size), in.remaining()));
    }
    return {};
}

std::optional<std::uint64_t> vaddr_of_offset(const std::vector<Segment>& segments, std::uint64_t file_offset,
                                             std::uint64_t page_size) {
    const std::uint64_t page_mask = std::has_single_bit(page_size) ? page_size - 1 : 0;
    std::optional<std::uint64_t> on_same_page;
    for (const Segment& segment : segments) {
        if (segment.type != segment_load || segment.file_size == 0) continue;
        const std::uint64_t delta = file_offset - segment.offset;  // wraps if below; vaddr + delta wraps back
        if (file_offset >= segment.offset && delta < segment.file_size) return segment.vaddr + delta;
        // The loader maps whole pages, so bytes before p_offset and after the end are mapped too. Other segments have
        // priority.
        const std::uint64_t page_start = segment.offset & ~page_mask;
        const std::uint64_t mapped = (segment.offset & page_mask) + segment.file_size + page_mask;
        const bool fits = file_offset >= page_start && file_offset - page_start < (mapped & ~page_mask);
        if (fits && !on_same_page) on_same_page = segment.vaddr + delta;
    }
    return on_same_page;
}

std::optional<std::uint64_t> offset_of_vaddr(const std::vector<Segment>& segments, std::uint64_t vaddr,
                                             std::uint32_t flags) {
    for (const Segment& segment : segments)
        if (segment.type == segment_load && (segment.flags & flags) == flags && vaddr >= segment.vaddr &&
            vaddr - segment.vaddr < segment.file_size)
            return segment.offset + (vaddr - segment.vaddr);
    return std::nullopt;
}

}  // namespace flamewire::elf
