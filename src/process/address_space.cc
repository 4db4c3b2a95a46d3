#include "process/address_space.h"

#include <algorithm>

namespace flamewire::process {

std::size_t AddressSpace::first_ending_after(std::uint64_t address) const {
    const auto found = std::partition_point(mappings_.begin(), mappings_.end(),
                                            [&](const Mapping& mapping) { return mapping.end <= address; });
    return static_cast<std::size_t>(found - mappings_.begin());
}

const Mapping* AddressSpace::find(std::uint64_t address) const {
    const std::size_t index = first_ending_after(address);
    if (index == mappings_.size() || mappings_[index].start > address) return nullptr;
    return &mappings_[index];
}

bool AddressSpace::erase(std::uint64_t start, std::uint64_t end) {
    if (start >= end) return false;
    const std::size_t first = first_ending_after(start);
    std::size_t last = first;
    while (last < mappings_.size() && mappings_[last].start < end) ++last;
    if (first == last) return false;
    // The parts on either side of the hole stay: at most one piece each.
    Mapping left = mappings_[first];
    Mapping right = mappings_[last - 1];
    const bool keep_left = left.start < start;
    const bool splits = keep_left && first + 1 == last;
    const bool keep_right = right.end > end && !(splits && full());
    left.end = start;
    right.file_offset += end - right.start;
    right.start = end;
    auto position = mappings_.erase(mappings_.begin() + static_cast<std::ptrdiff_t>(first),
                                    mappings_.begin() + static_cast<std::ptrdiff_t>(last));
    if (keep_right) position = mappings_.insert(position, right);
    if (keep_left) mappings_.insert(position, left);
    return true;
}

AddressSpace::Change AddressSpace::insert(const Mapping& mapping) {
    if (mapping.start >= mapping.end) return Change::none;
    // Nothing changes if one known mapping covers the range with the same content at the same position.
    if (const Mapping* known = find(mapping.start);
        known != nullptr && known->end >= mapping.end && known->module == mapping.module &&
        (mapping.module == 0 || known->file_offset + (mapping.start - known->start) == mapping.file_offset))
        return Change::none;
    const bool replaced = erase(mapping.start, mapping.end);
    if (full()) return replaced ? Change::replaced : Change::none;
    const std::size_t index = first_ending_after(mapping.start);
    mappings_.insert(mappings_.begin() + static_cast<std::ptrdiff_t>(index), mapping);
    return replaced ? Change::replaced : Change::added;
}

bool AddressSpace::fill(const Mapping& mapping) {
    bool added = false;
    for (std::uint64_t start = mapping.start; start < mapping.end;) {
        const std::size_t next = first_ending_after(start);
        const bool last = next == mappings_.size();
        const std::uint64_t end = last ? mapping.end : std::min(mapping.end, mappings_[next].start);
        const std::uint64_t next_start = last ? mapping.end : mappings_[next].end;
        if (start < end)
            added |=
                insert({start, end, mapping.file_offset + (start - mapping.start), mapping.module}) != Change::none;
        start = next_start;
    }
    return added;
}

}  // namespace flamewire::process
