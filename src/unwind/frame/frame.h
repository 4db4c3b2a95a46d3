// One frame of a walked stack.
#pragma once

#include <cstdint>

#include "base/code_address.h"

namespace flamewire::unwind {

// How the walk got to this frame from its callee.
enum class FoundBy : std::uint8_t {
    registers,   // the innermost frame: the sampled registers
    rule,        // a rule from the module's tables
    expression,  // a rule with a DWARF expression
    code,        // the callee's code, which has no table
    signal,      // the kernel's signal frame, recognized by its trampoline code
    libunwind,
    frame_pointer,
    link_register,
    chain,   // the kernel's frame-pointer chain
    joined,  // an earlier stack of the same thread
};
inline constexpr std::size_t ways_to_find = 10;

struct Frame {
    std::uint64_t pc = 0;  // ARM: without the Thumb bit; aarch64: without pointer authentication bits
    std::uint64_t sp = 0;  // the stack pointer in this frame; 0: unknown (found by chain)
    std::uint64_t fp = 0;  // the frame-pointer register in this frame; 0: unknown
    FoundBy found_by = FoundBy::registers;
    bool return_address = false;  // of pc, see CodeAddress
    // The rule at pc follows the frame-pointer convention, so the kernel's walk unwinds this frame correctly. Set when
    // the walk leaves this frame or tries to.
    bool frame_pointer_safe = false;
    std::uint64_t pc_at = 0;  // stack address of the saved pc; 0: none or unknown
    // The next frame is the caller's caller. It was found by a frame pointer alone, which skips a function that has not
    // set it (yet).
    bool caller_missing = false;
    // The kernel's walk skips this frame's caller and is correct from there on. Set like frame_pointer_safe.
    bool skips_caller = false;

    [[nodiscard]] CodeAddress code_address() const { return {pc, return_address}; }
    bool operator==(const Frame&) const = default;
};

}  // namespace flamewire::unwind
