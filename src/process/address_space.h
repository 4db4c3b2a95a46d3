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
    std::uint32_t module = 0;          // the owner's number for it; 0: anonymous memory
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

    // The kernel's usual limit for one process (vm.max_map_count).
    static constexpr std::size_t usual_limit = 65'536;

    AddressSpace() = default;
    // `limit`: the most mappings that it has.
    explicit AddressSpace(std::size_t limit) : limit_(limit) {}

    // Cuts, splits or removes older mappings that overlap `mapping`. Ignores an empty range, and what would exceed the
    // limit.
    Change insert(const Mapping& mapping);
    // Adds only what is not yet known. True if anything was added.
    bool fill(const Mapping& mapping);
    // Removes executable mappings from the range. True if there were any. In a full map, a mapping that would be split
    // loses its upper part.
    bool erase(std::uint64_t start, std::uint64_t end);
    [[nodiscard]] const Mapping* find(std::uint64_t address) const;
    [[nodiscard]] std::span<const Mapping> mappings() const { return mappings_; }
    [[nodiscard]] bool full() const { return mappings_.size() >= limit_; }

    bool operator==(const AddressSpace& other) const { return mappings_ == other.mappings_; }

private:
    std::size_t first_ending_after(std::uint64_t address) const;

    std::vector<Mapping> mappings_;  // sorted, disjoint
    std::size_t limit_ = usual_limit;
};

}  // namespace flamewire::process
