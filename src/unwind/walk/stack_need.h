// What it takes to find a stack: judged afterwards, by the tables, from a stack that was found.
#pragma once

#include <cstdint>
#include <span>

#include "unwind/walk/frame_chain.h"
#include "unwind/walk/unwinder.h"

namespace flamewire::unwind {

enum class StackNeed : std::uint8_t {
    chain,       // the kernel's frame-pointer chain is right
    short_copy,  // only the innermost frames keep no frame pointer: tables and a small copy lead to where the chain holds
    long_copy,  // frames further out keep none
};
inline constexpr std::size_t stack_needs = 3;

// Of a walked stack. Frames next to the root that keep no frame pointer (libc's way into main) do not count, up to 4 of
// them: they are the same in every stack, so the chain's open end can be completed. `short_bytes` is what a small copy
// has.
StackNeed need_of_walk(Unwinder& unwinder, Arch arch, std::span<const Frame> frames, CodeMap& map,
                       std::uint64_t short_bytes);

// Of a chain that was checked and begins at `pc`. `end_is_known`: it ends at the root, or its open end was completed.
StackNeed need_of_chain(Unwinder& unwinder, Arch arch, std::uint64_t pc, ChainQuality quality, bool end_is_known,
                        CodeMap& map);

}  // namespace flamewire::unwind
