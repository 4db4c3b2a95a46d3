// .eh_frame_hdr: the linker's sorted table of function starts and their .eh_frame entries. It is searched in place in
// the file. Source: Linux Standard Base 5.0 Core, section 10.6.2.
#pragma once

#include <cstdint>
#include <optional>

#include "unwind/tables/module_file.h"

namespace flamewire::unwind {

class SearchTable {
public:
    // `range` is PT_GNU_EH_FRAME. If the header is unreadable, frames() is nullopt and size() is 0.
    SearchTable(ModuleFile& file, FileRange range, std::uint8_t address_size, bool big_endian);

    // Address of .eh_frame, if the header has it.
    [[nodiscard]] std::optional<std::uint64_t> frames() const { return frames_; }
    // Number of entries, if the table can be searched in place (linkers write no other kind). Otherwise 0.
    [[nodiscard]] std::uint64_t size() const { return count_; }

    struct Entry {
        std::uint64_t start = 0, description = 0;  // addresses
    };
    std::optional<Entry> entry_at(std::uint64_t position);
    // Position of the last entry that starts at or below `address`.
    std::optional<std::uint64_t> find(std::uint64_t address);
    // Reads the whole table.
    [[nodiscard]] bool is_sorted() const;

private:
    // Start of the entry with index `position`, relative to the header. nullopt if it cannot be read.
    std::optional<std::int32_t> relative_start(std::uint64_t position);

    ModuleFile& file_;
    FileRange range_;
    std::uint8_t address_size_;
    bool big_endian_;
    std::optional<std::uint64_t> frames_;
    std::uint64_t table_ = 0, count_ = 0;  // file offset of the table
};

}  // namespace flamewire::unwind
