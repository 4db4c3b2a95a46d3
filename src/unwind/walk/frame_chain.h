// The kernel's frame-pointer chain, checked against unwind tables and joined with a short walk. Pure but for the table
// lookups.
//
// The kernel walks frame pointers without knowing whether a function keeps them. The tables do: where a frame's row is
// "CFA = fp + 2 words, fp and return address stored below it", the kernel's step from that frame was right. So a chain
// can be checked, entry by entry, without a byte of stack.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "unwind/walk/unwinder.h"

namespace flamewire::unwind {

enum class ChainQuality : std::uint8_t {
    whole,     // every step was right, and the last frame is the root
    open_end,  // a frame behind the innermost keeps no frame pointer: the chain is right up to it and says nothing of
               // its callers; entries behind it are wrong
    leaf_unsafe,  // whole or open_end, but the innermost frame keeps no frame pointer: its caller may be missing; where
                  // it uses the register for something else, no entry behind it is right
};

struct ChainCheck {
    ChainQuality quality = ChainQuality::open_end;
    std::size_t right = 0;  // entries from the front that are right (but for a missing caller of the innermost one)
    bool at_root = false;   // the last of them is the root
};

// `chain`: user part of a call chain as the kernel gives it, innermost first, without markers: the interrupted pc, then
// return addresses.
ChainCheck check_chain(Unwinder& unwinder, Arch arch, std::span<const std::uint64_t> chain, CodeMap& map);

// Whether the entry behind chain[entry] is its caller's caller: its function leaves the frame pointer as it is.
bool skips_caller(Unwinder& unwinder, Arch arch, std::span<const std::uint64_t> chain, std::size_t entry, CodeMap& map);

// A walk over a short stack copy (its frames as Unwinder::walk left them), continued by the chain: from the first
// walked frame that keeps the frame-pointer convention and whose frame pointer the kernel's walk passed through. `stack`
// is the copy: it tells which chain entry belongs to which frame pointer. Appends the rest of the chain to `frames`.
// True when they met: then `frames` ends with the last chain entry that is right, which check_chain's rules say, and
// `at_root` tells whether that is the root. False: `frames` is as it was.
bool splice(Unwinder& unwinder, Arch arch, std::span<const std::uint64_t> chain, const StackCopy& stack, CodeMap& map,
            std::size_t max_depth, std::vector<Frame>& frames, bool& at_root);

}  // namespace flamewire::unwind
