#include "unwind/walk/stack_need.h"

#include <algorithm>

namespace flamewire::unwind {
namespace {

// libc's startup frames of a program or a thread.
constexpr std::size_t most_root_frames = 4;
// Rows between a function's first instruction and its body: before it pushes and before it sets the frame pointer.
constexpr int prologue_rows = 3;

// Whether a function that keeps the frame pointer was interrupted where it has not set it yet or has restored it. The
// kernel skips its caller then. That affects only a few instructions, which does not justify copying the stack every
// time.
bool between_body_and_call(Unwinder& unwinder, Arch arch, std::uint64_t pc, CodeMap& map) {
    Unwinder::PcFacts facts = unwinder.facts(arch, {pc, false}, map);
    if (!facts.known) return false;
    if (facts.row_start != 0 && unwinder.facts(arch, {facts.row_start - 1, false}, map).frame_pointer_safe) return true;
    for (int row = 0; row < prologue_rows && facts.known; ++row) {
        if (facts.row_end <= pc) return false;
        facts = unwinder.facts(arch, {facts.row_end, false}, map);
        if (facts.frame_pointer_safe) return true;
    }
    return false;
}

}  // namespace

StackNeed need_of_walk(Unwinder& unwinder, Arch arch, std::span<const Frame> frames, CodeMap& map,
                       std::uint64_t short_bytes) {
    std::size_t end = frames.size();  // the frames before it count
    std::size_t at_root = 0;
    while (end > 0 && !frames[end - 1].frame_pointer_safe && at_root < most_root_frames) {
        --end;
        ++at_root;
    }
    if (end == 0) return frames.size() <= 1 ? StackNeed::chain : StackNeed::long_copy;

    const auto safe = [](const Frame& frame) { return frame.frame_pointer_safe; };
    const auto counted = frames.first(end);
    const auto first_safe = std::find_if(counted.begin(), counted.end(), safe);
    const auto chain_goes_on = [&](const Frame& frame) { return safe(frame) || frame.skips_caller; };
    if (!std::all_of(first_safe, counted.end(), chain_goes_on)) return StackNeed::long_copy;
    if (first_safe == counted.begin()) return StackNeed::chain;
    const auto lead = first_safe - counted.begin();
    if (lead == 1 && between_body_and_call(unwinder, arch, frames[0].pc, map)) return StackNeed::chain;
    // The kernel's walk starts at the current frame pointer, so the innermost frames must not have changed it.
    const bool reachable = first_safe->fp != 0 && first_safe->fp == frames[0].fp;
    const bool near = first_safe->fp - frames[0].sp + 16 <= short_bytes;
    return reachable && near ? StackNeed::short_copy : StackNeed::long_copy;
}

StackNeed need_of_chain(Unwinder& unwinder, Arch arch, std::uint64_t pc, ChainQuality quality, bool end_is_known,
                        CodeMap& map) {
    if (!end_is_known) return StackNeed::long_copy;
    if (quality != ChainQuality::leaf_unsafe || between_body_and_call(unwinder, arch, pc, map)) return StackNeed::chain;
    return StackNeed::short_copy;
}

}  // namespace flamewire::unwind
