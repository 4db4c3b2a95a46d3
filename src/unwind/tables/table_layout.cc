#include "unwind/tables/table_layout.h"

#include <algorithm>
#include <string_view>

namespace flamewire::unwind {
namespace {

constexpr std::uint16_t type_relocatable = 1, machine_arm = 40;
constexpr std::uint32_t segment_eh_frame = 0x6474e550, segment_exidx = 0x70000001;
constexpr std::uint32_t section_nobits = 8;
constexpr std::uint64_t section_allocated = 2, section_executable = 4, section_tls = 0x400, section_compressed = 0x800;
// In a file with more ranges, sections are not useful; its segments are used instead.
constexpr std::size_t max_code_ranges = 64;

FileRange range_of(const elf::Section& section) { return {section.address, section.offset, section.size}; }

const elf::Section* find_section(const std::vector<elf::Section>& sections, std::string_view name) {
    const auto found = std::find_if(sections.begin(), sections.end(), [&](const elf::Section& section) {
        return section.name == name && section.type != section_nobits && section.size != 0;
    });
    return found == sections.end() ? nullptr : &*found;
}

// A file of separate debug information keeps the program headers, but not the contents that they describe.
bool is_left_out(const std::vector<elf::Section>& sections, std::uint64_t address) {
    return std::any_of(sections.begin(), sections.end(), [&](const elf::Section& section) {
        // Addresses of thread-local storage overlap with other sections.
        return section.type == section_nobits &&
               (section.flags & (section_allocated | section_tls)) == section_allocated &&
               address - section.address < section.size;
    });
}

std::optional<FileRange> find_segment(const elf::Header& header, const std::vector<elf::Section>& sections,
                                      std::uint32_t type) {
    for (const elf::Segment& segment : header.segments)
        if (segment.type == type && !is_left_out(sections, segment.vaddr))
            return FileRange{segment.vaddr, segment.offset, segment.file_size};
    return std::nullopt;
}

void add_code(std::vector<TableLayout::CodeRange>& code, std::uint64_t address, std::uint64_t size) {
    const std::uint64_t end = size > ~address ? ~std::uint64_t{0} : address + size;
    // Merge neighbors that are separated only by a little alignment padding.
    if (!code.empty() && address >= code.back().end && address - code.back().end < 64)
        code.back().end = end;
    else if (code.size() <= max_code_ranges)
        code.push_back({address, end});
}

std::vector<TableLayout::CodeRange> find_code(const elf::Header& header, const std::vector<elf::Section>& sections) {
    std::vector<TableLayout::CodeRange> code;
    if (header.type == type_relocatable) return code;  // all its sections have address 0
    constexpr std::uint64_t both = section_allocated | section_executable;
    for (const elf::Section& section : sections)
        if ((section.flags & both) == both && section.size != 0) add_code(code, section.address, section.size);
    if (!code.empty() && code.size() <= max_code_ranges) return code;
    code.clear();
    for (const elf::Segment& segment : header.segments)
        if (segment.type == elf::segment_load && (segment.flags & elf::segment_executable) != 0)
            add_code(code, segment.vaddr, segment.file_size);
    return code;
}

}  // namespace

bool TableLayout::is_code(std::uint64_t address) const {
    return code.empty() || std::any_of(code.begin(), code.end(), [&](const CodeRange& range) {
               return address >= range.start && address < range.end;
           });
}

TableLayout table_layout(const elf::Header& header, const std::vector<elf::Section>& sections) {
    TableLayout layout;
    layout.code = find_code(header, sections);
    layout.search_table = find_segment(header, sections, segment_eh_frame);
    if (header.machine == machine_arm) {
        layout.exidx = find_segment(header, sections, segment_exidx);
        if (const elf::Section* index = find_section(sections, ".ARM.exidx"); index != nullptr && !layout.exidx)
            layout.exidx = range_of(*index);
    }
    if (const elf::Section* text = find_section(sections, ".text")) layout.bases.text = text->address;
    const elf::Section* got = find_section(sections, ".got.plt");
    if (got == nullptr) got = find_section(sections, ".got");
    if (got != nullptr) layout.bases.data = got->address;
    if (const elf::Section* frames = find_section(sections, ".eh_frame")) layout.eh_frame = range_of(*frames);
    if (const elf::Section* debug = find_section(sections, ".debug_frame")) {
        layout.debug_frame = FileRange{0, debug->offset, debug->size};  // not loaded, so it has no address
        layout.debug_compressed = (debug->flags & section_compressed) != 0;
    } else if (const elf::Section* packed = find_section(sections, ".zdebug_frame")) {
        layout.debug_frame = FileRange{0, packed->offset, packed->size};
        layout.debug_compressed = true;
    }
    if (const elf::Section* mini = find_section(sections, ".gnu_debugdata"))
        layout.mini_debug = FileRange{0, mini->offset, mini->size};
    return layout;
}

}  // namespace flamewire::unwind
