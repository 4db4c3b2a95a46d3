// Why the walk of a stack ended. Stopping is not reaching: only `root` says that the stack is whole.
#pragma once

#include <cstdint>

namespace flamewire::unwind {

enum class StopReason : std::uint8_t {
    root,            // the outermost frame
    truncated_copy,  // the copied stack bytes ended
    no_map,          // a pc in no mapping
    no_info,         // a module without unwind information for this pc
    bad_read,        // memory that the view does not have
    not_advancing,   // the stack pointer did not move outwards
    max_depth,       // the frame limit
    chain_end,       // a frame-pointer chain ended; whether at the root, nobody knows
};

}  // namespace flamewire::unwind
