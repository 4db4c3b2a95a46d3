// Bounds-checked reading of what Flamewire needs of an ELF file: class, byte order, machine, program headers, sections,
// notes, build-id. Reads through a ByteSource with pread into bounded buffers, never mmap: a file that shrinks under us
// is an error, not a SIGBUS. 32- and 64-bit, both byte orders. Source: the System V gABI, chapters 4 and 5.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace flamewire::elf {

// Values of the gABI that callers compare with.
inline constexpr std::uint32_t segment_load = 1;        // PT_LOAD
inline constexpr std::uint32_t segment_executable = 1;  // PF_X in Segment::flags

// Reads `size` bytes at `offset`; a shorter answer means the end of the file.
using ByteSource = std::function<Result<std::string>(std::uint64_t offset, std::size_t size)>;
ByteSource source_of_fd(int fd);          // does not own fd
ByteSource source_of_bytes(Bytes bytes);  // does not own the bytes

struct Segment {
    std::uint32_t type = 0, flags = 0;
    std::uint64_t offset = 0, vaddr = 0, file_size = 0, memory_size = 0;
};

struct Section {
    std::string name;
    std::uint32_t type = 0;
    std::uint64_t flags = 0, address = 0, offset = 0, size = 0;
};

struct Header {
    bool is_64 = true;
    bool big_endian = false;
    std::uint16_t type = 0, machine = 0;
    std::uint64_t section_offset = 0;  // 0 when the file has no section headers
    std::uint16_t section_entry_size = 0;
    std::uint16_t section_count = 0;  // as in the header: 0 also stands for "see section 0"
    std::uint16_t section_names = 0;  // index of .shstrtab; 0xffff stands for "see section 0"
    std::vector<Segment> segments;
};

// invalid: not an ELF file, or headers that do not fit it. One read for usual files.
Result<Header> read_header(const ByteSource& source);
// All sections with their names; empty for a file without section headers. invalid: headers that do not fit the file.
Result<std::vector<Section>> read_sections(const ByteSource& source, const Header& header);

// The GNU build-id from the PT_NOTE segments (or, without any, the note sections); empty when there is none.
Result<std::string> read_build_id(const ByteSource& source, const Header& header);

// File offset of `size` bytes at `address`, by the section that holds all of them; nothing for zeros that are in no file.
std::optional<std::uint64_t> offset_of_address(const std::vector<Section>& sections, std::uint64_t address,
                                               std::uint64_t size);

// The build-id in a run of ELF notes (a note section, /sys/kernel/notes); empty when there is none.
std::string build_id_of_notes(Bytes notes, bool big_endian);

// ELF virtual address of a byte at `file_offset`, by the PT_LOAD that covers it; segments of type PT_LOAD only.
// `page_size` because a mapping starts at a page boundary below p_offset.
std::optional<std::uint64_t> vaddr_of_offset(const std::vector<Segment>& segments, std::uint64_t file_offset,
                                             std::uint64_t page_size);

}  // namespace flamewire::elf
