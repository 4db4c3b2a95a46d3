// Classifies what was needed to unwind a stack. Decided afterwards, from the tables and the stack that was found.
#pragma once

#include <cstdint>
#include <span>

#include "unwind/walk/frame_chain.h"
#include "unwind/walk/unwinder.h"

namespace flamewire::unwind {

enum class StackNeed : std::uint8_t {
    chain,       // the kernel's frame-pointer chain is correct
    short_copy,  // only the innermost frames keep no frame pointer; tables and a small copy lead to the correct chain
    long_copy,   // frames further out keep no frame pointer
};
inline constexpr std::size_t stack_needs = 3;

// For a walked stack. Up to 4 frames at the root without a frame pointer (libc's path to main) do not count: they are
// the same in every stack, so the chain's open end can be completed. `short_bytes` is the size of a small copy.
StackNeed need_of_walk(Unwinder& unwinder, Arch arch, std::span<const Frame> frames, CodeMap& map,
                       std::uint64_t short_bytes);

// For a checked chain that starts at `pc`. `end_is_known`: it ends at the root, or its open end was completed.
StackNeed need_of_chain(Unwinder& unwinder, Arch arch, std::uint64_t pc, ChainQuality quality, bool end_is_known,
                        CodeMap& map);

}  // namespace flamewire::unwind
