// Index for a section of call frame information without a search table: all function starts, sorted, with the offsets
// of their entries. Takes eight bytes per function: the low halves of address and offset, in one array per 4 GiB of
// addresses. Almost all modules have one array.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "unwind/tables/frame_section.h"

namespace flamewire::unwind {

class FrameIndex {
public:
    // Adds the functions in `section` whose start satisfies `is_code`.
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
    // Offset of the entry with index `position`, in address order.
    [[nodiscard]] std::uint64_t offset_at(std::size_t position) const;
    [[nodiscard]] std::size_t memory_bytes() const;

private:
    struct Window {
        std::uint64_t number = 0;              // index of the 4 GiB window
        std::vector<std::uint64_t> functions;  // the address's low half, then the offset
    };
    bool add(const FrameSection::Start& start);
    void sort();

    std::vector<Window> windows_;  // by number
    std::size_t count_ = 0;
};

}  // namespace flamewire::unwind
