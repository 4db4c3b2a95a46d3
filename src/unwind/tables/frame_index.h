// Where the entry of a function is, for a section of call frame information that has no search table: all starts,
// sorted. Eight bytes a function: addresses and offsets of 4 GiB fit two halves, so there is an array for each 4 GiB of
// addresses; almost all modules have one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "unwind/tables/frame_section.h"

namespace flamewire::unwind {

class FrameIndex {
public:
    // Of the functions in `section` for which `is_code` (of their start) holds.
    template <class IsCode>
    void build(FrameSection& section, const IsCode& is_code, TableWork& work) {
        FrameSection::Pass pass(section, work);
        while (const auto start = pass.next())
            if (is_code(start->address) && !add(*start)) break;
        sort();
    }

    // The offset of the last entry whose function starts at or below `address`.
    [[nodiscard]] std::optional<std::uint64_t> find(std::uint64_t address) const;
    [[nodiscard]] std::size_t size() const { return count_; }
    // Of the entry with number `position`, by address.
    [[nodiscard]] std::uint64_t offset_at(std::size_t position) const;
    [[nodiscard]] std::size_t memory_bytes() const;

private:
    struct Window {
        std::uint64_t number = 0;              // of the 4 GiB
        std::vector<std::uint64_t> functions;  // the address's lower half, then the offset
    };
    bool add(const FrameSection::Start& start);
    void sort();

    std::vector<Window> windows_;  // by number
    std::size_t count_ = 0;
};

}  // namespace flamewire::unwind
