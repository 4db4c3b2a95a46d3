// Which frames of threads were seen with more than one caller. A table of fixed size: a newer frame replaces an older one
// at the same place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "unwind/join/stored_stack.h"

namespace flamewire::unwind {

class CallerTable {
public:
    void note(std::uint64_t thread_id, const StoredFrame& frame, const StoredFrame& caller);
    void note_several(std::uint64_t thread_id, const StoredFrame& frame) { place_of(thread_id, frame).several = true; }
    [[nodiscard]] bool has_several(std::uint64_t thread_id, const StoredFrame& frame) const;
    [[nodiscard]] std::size_t memory_bytes() const { return places_.capacity() * sizeof(Place); }

private:
    struct Place {
        std::uint64_t frame = 0, caller = 0;
        bool several = false;
    };
    Place& place_of(std::uint64_t thread_id, const StoredFrame& frame);

    std::vector<Place> places_;  // empty until the first frame
};

}  // namespace flamewire::unwind
