// Checks a frame-pointer chain with the tables, and joins it with a walk.
#include "unwind/walk/frame_chain.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "unwind/arch/arch.h"

namespace flamewire::unwind {

namespace {

// The record at a frame pointer, as the kernel reads it: the caller's frame pointer, then the return address.
struct Record {
    std::uint64_t outer = 0, return_address = 0;
};
std::optional<Record> record_at(const StackCopy& stack, std::uint64_t address, std::uint8_t word_size) {
    const std::uint64_t offset = address - stack.address;
    if (address < stack.address || offset > stack.bytes.size() ||
        stack.bytes.size() - offset < std::size_t{2} * word_size)
        return std::nullopt;
    Record record;
    if (word_size == 8) {
        std::memcpy(&record.outer, stack.bytes.data() + offset, 8);
        std::memcpy(&record.return_address, stack.bytes.data() + offset + 8, 8);
    } else {
        std::uint32_t half = 0;
        std::memcpy(&half, stack.bytes.data() + offset, 4);
        record.outer = half;
        std::memcpy(&half, stack.bytes.data() + offset + 4, 4);
        record.return_address = half;
    }
    return record;
}

// Where walk and chain meet: the caller of frames[frame] is chain[entry].
struct Meeting {
    std::size_t frame = 0, entry = 0;
};

// Follows the kernel's walk through the copy, record by record, until it reaches a frame that was also walked.
std::optional<Meeting> meet(Arch arch, std::span<const std::uint64_t> chain, const StackCopy& stack,
                            std::span<const Frame> frames) {
    const std::uint8_t word_size = arch_info(arch).names.word_size;
    std::uint64_t frame_pointer = frames.front().fp;
    std::size_t walked = 0;
    for (std::size_t entry = 1; entry < chain.size(); ++entry) {
        while (walked < frames.size() && (!frames[walked].frame_pointer_safe || frames[walked].fp < frame_pointer))
            ++walked;
        if (walked == frames.size()) return std::nullopt;
        if (frames[walked].fp == frame_pointer) return Meeting{.frame = walked, .entry = entry};
        const std::optional<Record> record = record_at(stack, frame_pointer, word_size);
        // Not what the kernel read, or not outwards: the entries can no longer be matched.
        if (!record || record->outer <= frame_pointer) return std::nullopt;
        frame_pointer = record->outer;
    }
    return std::nullopt;
}

// How far the chain is correct, assuming that chain[begin] is.
struct RightPart {
    std::size_t end = 0;
    bool at_root = false;  // whether its last entry is the root
};
RightPart right_part(Unwinder& unwinder, Arch arch, std::span<const std::uint64_t> chain, std::size_t begin,
                     CodeMap& map) {
    for (std::size_t entry = begin; entry < chain.size(); ++entry) {
        const Unwinder::PcFacts facts = unwinder.facts(arch, {chain[entry], entry > 0}, map);
        if (!facts.mapped) return {.end = entry, .at_root = false};
        if (!facts.frame_pointer_safe && !facts.skips_caller) return {.end = entry + 1, .at_root = facts.root};
    }
    return {.end = chain.size(), .at_root = false};
}

// The innermost function has no frame of the convention (yet). Whether the frame pointer still leads to a correct one:
// true while it is the caller's, and between saving and setting it, which the next row shows. Otherwise the function
// uses the register for something else.
bool first_step_lands(Unwinder& unwinder, Arch arch, const Unwinder::PcFacts& leaf, CodeMap& map) {
    if (leaf.frame_pointer_same) return true;
    return leaf.known && leaf.row_end != 0 && unwinder.facts(arch, {leaf.row_end, false}, map).frame_pointer_safe;
}

}  // namespace

bool skips_caller(Unwinder& unwinder, Arch arch, std::span<const std::uint64_t> chain, std::size_t entry,
                  CodeMap& map) {
    return unwinder.facts(arch, {chain[entry], entry > 0}, map).skips_caller;
}

ChainCheck check_chain(Unwinder& unwinder, Arch arch, std::span<const std::uint64_t> chain, CodeMap& map) {
    if (chain.empty()) return {};
    const Unwinder::PcFacts leaf = unwinder.facts(arch, {chain.front(), false}, map);
    ChainCheck check{.quality = ChainQuality::open_end, .right = 1, .at_root = leaf.root};
    const bool leaf_unsafe = !leaf.frame_pointer_safe && !leaf.root;
    if (!leaf.root && (leaf.frame_pointer_safe || first_step_lands(unwinder, arch, leaf, map))) {
        const RightPart part = right_part(unwinder, arch, chain, 1, map);
        check.right = part.end;
        check.at_root = part.at_root;
    }
    if (leaf_unsafe) {
        check.quality = ChainQuality::leaf_unsafe;
    } else if (check.at_root) {
        check.quality = ChainQuality::whole;
    }
    return check;
}

bool splice(Unwinder& unwinder, Arch arch, std::span<const std::uint64_t> chain, const StackCopy& stack, CodeMap& map,
            std::size_t max_depth, std::vector<Frame>& frames, bool& at_root) {
    at_root = false;
    // The kernel of 32-bit ARM follows a frame layout that compilers no longer generate.
    if (frames.empty() || chain.size() < 2 || arch == Arch::arm) return false;
    const std::optional<Meeting> meeting = meet(arch, chain, stack, frames);
    if (!meeting) return false;
    const RightPart part = right_part(unwinder, arch, chain, meeting->entry, map);

    // Where both are correct, they must agree.
    std::size_t entry = meeting->entry;
    std::size_t frame = meeting->frame + 1;
    for (; frame < frames.size() && entry < part.end; ++frame, ++entry) {
        if (frames[frame].pc != chain[entry]) return false;
        // The walk can contain a caller that the chain skips.
        if (!frames[frame].caller_missing && skips_caller(unwinder, arch, chain, entry, map)) ++frame;
    }
    if (frame < frames.size() || entry == part.end) return false;
    if (frame > frames.size()) frames.back().caller_missing = true;

    at_root = part.at_root && part.end - entry <= max_depth - std::min(frames.size(), max_depth);
    for (; entry < part.end && frames.size() < max_depth; ++entry) {
        frames.push_back({.pc = chain[entry],
                          .found_by = FoundBy::chain,
                          .return_address = true,
                          .frame_pointer_safe = entry + 1 < part.end,
                          .caller_missing = entry + 1 < part.end && skips_caller(unwinder, arch, chain, entry, map)});
    }
    return true;
}

}  // namespace flamewire::unwind
