// Why the walk of a stack ended. Stopping is not reaching: only `root` says that the stack is whole.
#pragma once

#include <cstdint>
#include <string_view>

namespace flamewire::unwind {

enum class StopReason : std::uint8_t {
    root,            // the outermost frame: its return address is undefined in CFI, or it is the program's entry
    truncated_copy,  // the copied stack bytes ended, the stack did not
    no_map,          // a pc in no mapping
    no_info,         // nothing told how to leave this frame: no table, no frame pointer, no link register
    bad_read,        // memory that the view does not have
    not_advancing,   // the stack pointer did not move outwards
    max_depth,       // the frame limit
    chain_end,       // a frame-pointer chain ended; whether at the root, nobody knows
    other_stack,     // the callers are on another stack (Go's of a goroutine), which the copy does not have
    too_much_work,   // the tables on the way take longer than a stack may (TableWork)
};
inline constexpr std::size_t stop_reasons = 10;

// "root", "truncated_copy", …
std::string_view name_of(StopReason reason);

}  // namespace flamewire::unwind
