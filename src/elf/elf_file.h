// Bounds-checked reading of the parts of an ELF file that Flamewire needs: class, byte order, machine, program headers,
// sections, notes, build-id. Reads through a ByteSource with pread into bounded buffers, never mmap: a file that
// shrinks while it is read causes an error, not SIGBUS. 32- and 64-bit, both byte orders. Source: System V gABI,
// chapters 4 and 5.
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
inline constexpr std::uint32_t section_nobits = 8;      // SHT_NOBITS in Section::type: has no bytes in the file

// Reads `size` bytes at `offset`. A shorter result means end of file.
using ByteSource = std::function<Result<std::string>(std::uint64_t offset, std::size_t size)>;
ByteSource source_of_fd(int fd);          // does not own fd
ByteSource source_of_bytes(Bytes bytes);  // does not own the bytes

// All `size` bytes at `offset`, at most 64 MiB. invalid: the file has fewer. The error's message names `what`.
Result<std::string> read_exactly(const ByteSource& source, std::uint64_t offset, std::uint64_t size, const char* what);

struct Segment {
    std::uint32_t type = 0, flags = 0;
    std::uint64_t offset = 0, vaddr = 0, file_size = 0, memory_size = 0;
};

struct Section {
    std::string name;
    std::uint32_t type = 0;
    std::uint64_t flags = 0, address = 0, offset = 0, size = 0;
    std::uint32_t link = 0;  // index of another section: a symbol table's string table
};

struct Header {
    bool is_64 = true;
    bool big_endian = false;
    std::uint16_t type = 0, machine = 0;
    std::uint64_t section_offset = 0;  // 0 if the file has no section headers
    std::uint16_t section_entry_size = 0;
    std::uint16_t section_count = 0;  // as in the header: 0 can also mean "see section 0"
    std::uint16_t section_names = 0;  // index of .shstrtab; 0xffff means "see section 0"
    std::vector<Segment> segments;
};

// invalid: not an ELF file, or headers outside the file. Most files need only one read.
Result<Header> read_header(const ByteSource& source);
// All sections with their names. Empty for a file without section headers. invalid: headers outside the file.
Result<std::vector<Section>> read_sections(const ByteSource& source, const Header& header);

// The GNU build-id from the PT_NOTE segments, or from the note sections if no segment has one. Empty if there is none.
Result<std::string> read_build_id(const ByteSource& source, const Header& header);

// File offset of `size` bytes at `address`, from the section that has them all. nullopt if none has, also for
// SHT_NOBITS.
std::optional<std::uint64_t> offset_of_address(const std::vector<Section>& sections, std::uint64_t address,
                                               std::uint64_t size);

// The build-id in a sequence of ELF notes (a note section, /sys/kernel/notes). Empty if there is none.
std::string build_id_of_notes(Bytes notes, bool big_endian);

// ELF virtual address of the byte at `file_offset`, from the PT_LOAD segment that covers it. `page_size` is needed
// because a mapping starts at a page boundary, which can be below p_offset.
std::optional<std::uint64_t> vaddr_of_offset(const std::vector<Segment>& segments, std::uint64_t file_offset,
                                             std::uint64_t page_size);

// The inverse for one byte of the file: where the byte at `vaddr` is, from a PT_LOAD segment with all of `flags` (0:
// any). nullopt if no segment has it, or it is not in the file (.bss).
std::optional<std::uint64_t> offset_of_vaddr(const std::vector<Segment>& segments, std::uint64_t vaddr,
                                             std::uint32_t flags = segment_executable);

}  // namespace flamewire::elf
