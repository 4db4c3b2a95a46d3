// The executable mappings of one process: address -> mapping. A new mapping replaces overlapping ones, as mmap does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace flamewire::process {

struct Mapping {
    std::uint64_t start = 0, end = 0;  // [start, end)
    std::uint64_t file_offset = 0;     // of `start`; meaningless without a module
    std::uint32_t module = 0;          // ModuleHandle; 0: anonymous memory
    bool operator==(const Mapping&) const = default;
};

class AddressSpace {
public:
    // How a new mapping changed the map.
    enum class Change {
        none,      // it was already present
        added,     // it covers only unknown ranges: every earlier answer except "unknown" remains valid
        replaced,  // it replaced other mappings
    };

    // Cuts, splits or removes older mappings that overlap `mapping`. Ignores an empty range, and any new range once the
    // map is full (65,536 mappings: the kernel's usual limit).
    Change insert(const Mapping& mapping);
    // Adds only what is not yet known. True if anything was added.
    bool fill(const Mapping& mapping);
    // Removes executable mappings from the range. True if there were any.
    bool erase(std::uint64_t start, std::uint64_t end);
    [[nodiscard]] const Mapping* find(std::uint64_t address) const;
    [[nodiscard]] std::span<const Mapping> mappings() const { return mappings_; }

    bool operator==(const AddressSpace&) const = default;

private:
    std::size_t first_ending_after(std::uint64_t address) const;

    std::vector<Mapping> mappings_;  // sorted, disjoint
};

}  // namespace flamewire::process
