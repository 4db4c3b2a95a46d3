// One frame of a walked stack.
#pragma once

#include <cstdint>

namespace flamewire::unwind {

// How the frame was found, that is, what led from its callee to it.
enum class FoundBy : std::uint8_t {
    registers,   // the innermost frame: where the thread was
    rule,        // a rule of the module's tables
    expression,  // a rule with a DWARF expression in it
    code,        // its callee's code, which no table describes
    signal,      // the kernel's signal frame, known by its trampoline's code
    libunwind,
    frame_pointer,
    link_register,
    chain,   // the kernel's frame-pointer chain
    joined,  // an earlier stack of the same thread
};
inline constexpr std::size_t ways_to_find = 10;

struct Frame {
    std::uint64_t pc = 0;  // ARM: without the Thumb bit; aarch64: without pointer authentication bits
    std::uint64_t sp = 0;  // the stack pointer in this frame; 0: not known (found by chain)
    std::uint64_t fp = 0;  // the frame-pointer register in this frame; 0: not known
    FoundBy found_by = FoundBy::registers;
    // pc is where the callee returns to: look up pc - 1. Otherwise it is the instruction that ran, or would run next.
    bool return_address = false;
    // The rule at pc is the frame-pointer convention's, so the kernel's own walk leaves this frame correctly. Set when
    // the walk went on from this frame, or tried to.
    bool frame_pointer_safe = false;
    std::uint64_t pc_at = 0;  // where on the stack pc was saved; 0: nowhere, or not known
    // What follows is not its caller but that one's caller: only a frame pointer led on, and it skips a function that has
    // not set it (yet).
    bool caller_missing = false;
    // The kernel's own walk would skip its caller, and be right from there on. Set as frame_pointer_safe is.
    bool skips_caller = false;
    bool operator==(const Frame&) const = default;
};

}  // namespace flamewire::unwind
