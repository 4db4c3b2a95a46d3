// Why a stack walk ended. Only `root` means that the stack is complete.
#pragma once

#include <cstdint>
#include <string_view>

namespace flamewire::unwind {

enum class StopReason : std::uint8_t {
    root,            // the outermost frame: its return address is undefined in CFI, or it is the program's entry
    truncated_copy,  // the stack is deeper than the copied bytes
    no_map,          // a pc outside all mappings
    no_info,         // no way to leave this frame: no table, no frame pointer, no link register
    bad_read,        // memory that is not available to the walk
    not_advancing,   // the stack pointer did not move outwards
    max_depth,       // the frame limit
    chain_end,       // a frame-pointer chain ended; whether at the root is unknown
    other_stack,     // the callers are on another stack (a goroutine's in Go), which was not copied
    too_much_work,   // the tables take more work than one stack may use (TableWork)
};
inline constexpr std::size_t stop_reasons = 10;

// "root", "truncated_copy", …
std::string_view name_of(StopReason reason);

}  // namespace flamewire::unwind
