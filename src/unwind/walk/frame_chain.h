// Checks the kernel's frame-pointer chain against unwind tables and joins it with a short walk. Pure except for the
// table lookups.
//
// The kernel walks frame pointers, although a function may not maintain them. The tables show whether it does: if a
// frame's row is "CFA = fp + 2 words, fp and return address stored below it", the kernel's step from that frame was
// correct. So a chain can be checked entry by entry without any stack bytes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "unwind/walk/unwinder.h"

namespace flamewire::unwind {

enum class ChainQuality : std::uint8_t {
    whole,        // every step was correct, and the last frame is the root
    open_end,     // a frame after the innermost keeps no frame pointer: the chain is correct up to it and has no
                  // information about its callers; later entries are wrong
    leaf_unsafe,  // whole or open_end, but the innermost frame keeps no frame pointer: its caller may be missing. If
                  // it uses the register for something else, no later entry is correct
};

struct ChainCheck {
    ChainQuality quality = ChainQuality::open_end;
    std::size_t right = 0;  // correct entries from the front (the innermost one's caller may still be missing)
    bool at_root = false;   // the last of them is the root
};

// `chain` is the user part of a kernel call chain, innermost first, without markers: the interrupted pc, then return
// addresses.
ChainCheck check_chain(Unwinder& unwinder, Arch arch, std::span<const std::uint64_t> chain, CodeMap& map);

// Whether the entry after chain[entry] is its caller's caller, because its function does not set the frame pointer.
bool skips_caller(Unwinder& unwinder, Arch arch, std::span<const std::uint64_t> chain, std::size_t entry, CodeMap& map);

// Continues a walk over a short stack copy (`frames` as Unwinder::walk left them) with the chain. They join at the
// first walked frame that follows the frame-pointer convention and whose frame pointer the kernel's walk passed.
// `stack` is the copy, which maps chain entries to frame pointers. Returns true if they met: `frames` then ends with
// the last chain entry that is correct by check_chain's rules, and `at_root` is whether that is the root. On false
// `frames` is unchanged.
bool splice(Unwinder& unwinder, Arch arch, std::span<const std::uint64_t> chain, const StackCopy& stack, CodeMap& map,
            std::size_t max_depth, std::vector<Frame>& frames, bool& at_root);

}  // namespace flamewire::unwind
