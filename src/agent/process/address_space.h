// The executable mappings of one process: address -> mapping. A new mapping replaces what it overlaps, as mmap does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace flamewire::agent {

struct Mapping {
    std::uint64_t start = 0, end = 0;  // [start, end)
    std::uint64_t file_offset = 0;     // of `start`; meaningless without a module
    std::uint32_t module = 0;          // ModuleHandle; 0: anonymous memory
    bool operator==(const Mapping&) const = default;
};

class AddressSpace {
public:
    // What a newcomer did to the map.
    enum class Change {
        none,      // it was there already
        added,     // it lies where nothing was known: every earlier answer but "unknown" still holds
        replaced,  // it took the place of something else
    };

    // Older mappings are cut, split or removed where `mapping` lies. An empty range changes nothing, nor does one more
    // range in a full map (65,536 mappings: the kernel's own usual limit).
    Change insert(const Mapping& mapping);
    // Only where nothing was known. True when something was added.
    bool fill(const Mapping& mapping);
    // Nothing executable is there any more. True when something was.
    bool erase(std::uint64_t start, std::uint64_t end);
    [[nodiscard]] const Mapping* find(std::uint64_t address) const;
    [[nodiscard]] std::span<const Mapping> mappings() const { return mappings_; }

    bool operator==(const AddressSpace&) const = default;

private:
    std::size_t first_ending_after(std::uint64_t address) const;

    std::vector<Mapping> mappings_;  // sorted, disjoint
};

}  // namespace flamewire::agent
