// Writes ELF files and call frame information byte by byte, from the tables of the gABI and of DWARF 5, section 6.4.1.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace flamewire::unwind::test {

// Numbers in the byte order and word size of a target.
struct Writer {
    bool is_64 = true, big_endian = false;
    std::string out{};

    Writer& number(std::uint64_t value, int size) {
        for (int i = 0; i < size; ++i) {
            const int byte = big_endian ? size - 1 - i : i;
            out.push_back(static_cast<char>(value >> (8 * byte) & 0xff));
        }
        return *this;
    }
    Writer& u8(std::uint64_t value) { return number(value, 1); }
    Writer& u16(std::uint64_t value) { return number(value, 2); }
    Writer& u32(std::uint64_t value) { return number(value, 4); }
    Writer& word(std::uint64_t value) { return number(value, is_64 ? 8 : 4); }
    Writer& raw(std::string_view bytes) {
        out += bytes;
        return *this;
    }
};

class ElfImage {
public:
    ElfImage(std::uint16_t machine = 62, bool is_64 = true, bool big_endian = false)
        : is_64_(is_64), big_endian_(big_endian), machine_(machine) {}

    std::uint64_t entry = 0;
    std::uint16_t type = 3;  // ET_DYN

    [[nodiscard]] Writer writer() const { return {is_64_, big_endian_}; }

    // flags: 1 execute, 2 write, 4 read. The bytes start at the next page of the file.
    void load(std::uint32_t flags, std::uint64_t address, std::string bytes) {
        segments_.push_back({1, flags, place(bytes), address, bytes.size()});
    }
    // A program header for bytes that are loaded.
    void segment(std::uint32_t segment_type, std::uint64_t address, std::uint64_t size) {
        segments_.push_back({segment_type, 4, offset_of(address), address, size});
    }
    void section(std::string name, std::uint64_t flags, std::uint64_t address, std::uint64_t size,
                 std::uint32_t section_type = 1) {
        sections_.push_back({std::move(name), section_type, flags, address, offset_of(address), size});
    }
    // A section for bytes that are not loaded.
    void unloaded(std::string name, const std::string& bytes, std::uint64_t flags = 0) {
        sections_.push_back({std::move(name), 1, flags, 0, place(bytes), bytes.size()});
    }

    [[nodiscard]] std::uint64_t offset_of(std::uint64_t address) const {
        for (const Segment& segment : segments_)
            if (segment.type == 1 && address - segment.address < segment.size)
                return segment.offset + address - segment.address;
        return 0;
    }

    [[nodiscard]] std::string build() const {
        Writer names = writer(), table = writer();
        names.u8(0);
        write_section(table, 0, {});
        for (const Section& section : sections_) {
            write_section(table, names.out.size(), section);
            names.raw(section.name).u8(0);
        }
        const std::uint64_t names_offset = page + bytes_.size(), table_offset = names_offset + names.out.size() + 16;
        const std::uint64_t own_name = names.out.size();
        names.raw(".shstrtab").u8(0).raw(std::string(6, '\0'));
        write_section(table, own_name, {"", 3, 0, 0, names_offset, own_name + 10});

        Writer out = writer();
        out.raw(
            "\x7f"
            "ELF");
        out.u8(is_64_ ? 2 : 1).u8(big_endian_ ? 2 : 1).u8(1).raw(std::string(9, '\0'));
        out.u16(type).u16(machine_).u32(1).word(entry).word(is_64_ ? 64 : 52);
        out.word(sections_.empty() ? 0 : table_offset).u32(0).u16(is_64_ ? 64 : 52).u16(is_64_ ? 56 : 32);
        out.u16(segments_.size()).u16(is_64_ ? 64 : 40);
        out.u16(sections_.empty() ? 0 : sections_.size() + 2).u16(sections_.empty() ? 0 : sections_.size() + 1);
        for (const Segment& segment : segments_) write_segment(out, segment);
        out.out.resize(page, '\0');
        return out.out + bytes_ + names.out + table.out;
    }

    std::size_t page = 0x1000;  // loads start at multiples of it; small, so that files are small

private:
    struct Segment {
        std::uint32_t type = 0, flags = 0;
        std::uint64_t offset = 0, address = 0, size = 0;
    };
    struct Section {
        std::string name{};
        std::uint32_t type = 0;
        std::uint64_t flags = 0, address = 0, offset = 0, size = 0;
    };

    std::uint64_t place(const std::string& bytes) {
        bytes_.resize((bytes_.size() + page - 1) / page * page, '\0');
        const std::uint64_t offset = page + bytes_.size();
        bytes_ += bytes;
        return offset;
    }
    void write_segment(Writer& out, const Segment& segment) const {
        out.u32(segment.type);
        if (is_64_) out.u32(segment.flags);
        out.word(segment.offset).word(segment.address).word(segment.address).word(segment.size).word(segment.size);
        if (!is_64_) out.u32(segment.flags);
        out.word(page);
    }
    static void write_section(Writer& out, std::uint64_t name, const Section& section) {
        out.u32(name).u32(section.type).word(section.flags).word(section.address).word(section.offset);
        out.word(section.size).u32(0).u32(0).word(1).word(0);
    }

    bool is_64_, big_endian_;
    std::uint16_t machine_;
    std::vector<Segment> segments_;
    std::vector<Section> sections_;
    std::string bytes_;
};

// One .eh_frame or .debug_frame at an address.
class FrameWriter {
public:
    FrameWriter(Writer writer, std::uint64_t address, bool debug = false, bool dwarf64 = false)
        : writer_(std::move(writer)), address_(address), debug_(debug), dwarf64_(dwarf64) {}

    // `content` writes what follows the id. `common` is -1 for a common entry, else the offset of its common entry.
    // Returns the entry's offset.
    std::uint64_t entry(std::int64_t common, const std::function<void(Writer&, std::uint64_t here)>& content) {
        const std::uint64_t start = writer_.out.size(), id_at = start + (dwarf64_ ? 12 : 4);
        Writer body{writer_.is_64, writer_.big_endian};
        const int id_size = dwarf64_ ? 8 : 4;
        const std::uint64_t target = static_cast<std::uint64_t>(common);
        const std::uint64_t id = common < 0 ? (debug_ ? ~std::uint64_t{0} : 0) : debug_ ? target : id_at - target;
        body.number(id, id_size);
        content(body, address_ + id_at);
        if (dwarf64_) writer_.u32(0xffffffff);
        writer_.number(body.out.size(), dwarf64_ ? 8 : 4).raw(body.out);
        return start;
    }

    // "zR" (or "" in .debug_frame): CFA = register 7 + 8, return address (column 16) at CFA - 8.
    std::uint64_t usual_common(std::uint8_t encoding = 0x1b) {
        return entry(-1, [&](Writer& out, std::uint64_t) {
            out.u8(1).raw(debug_ ? std::string_view("\0", 1) : std::string_view("zR\0", 3)).u8(1).u8(0x78).u8(16);
            if (!debug_) out.u8(1).u8(encoding);
            out.raw(usual_instructions);
        });
    }
    // A function with pcrel, sdata4 pointers (.eh_frame) or addresses (.debug_frame).
    std::uint64_t function(std::uint64_t common, std::uint64_t start, std::uint64_t size,
                           std::string_view instructions = {}) {
        return entry(static_cast<std::int64_t>(common), [&](Writer& out, std::uint64_t here) {
            if (debug_)
                out.word(start).word(size);
            else
                out.u32(start - (here + out.out.size())).u32(size).u8(0);
            out.raw(instructions);
        });
    }
    void zero() { writer_.u32(0); }

    [[nodiscard]] const std::string& bytes() const { return writer_.out; }
    Writer& writer() { return writer_; }
    static constexpr std::string_view usual_instructions{"\x0c\x07\x08\x90\x01", 5};

private:
    Writer writer_;
    std::uint64_t address_;
    bool debug_, dwarf64_;
};

// .eh_frame_hdr with a search table of (function start, address of its entry).
inline std::string search_table(Writer out, std::uint64_t address, std::uint64_t frames,
                                const std::vector<std::pair<std::uint64_t, std::uint64_t>>& entries) {
    out.u8(1).u8(0x1b).u8(0x03).u8(0x3b).u32(frames - (address + 4)).u32(entries.size());
    for (const auto& [start, entry] : entries) out.u32(start - address).u32(entry - address);
    return out.out;
}

}  // namespace flamewire::unwind::test
