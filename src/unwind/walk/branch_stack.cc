// Builds call chains from branch records and continues them with the kernel's chain.
#include "unwind/walk/branch_stack.h"

#include <algorithm>

namespace flamewire::unwind {

namespace {

// The longest x86 instruction. Only x86 CPUs have call-stack records.
constexpr std::uint64_t longest_call = 15;

bool returns_behind(std::uint64_t return_address, std::uint64_t call) {
    return return_address > call && return_address - call <= longest_call;
}

// Number of chain entries, from `entry` inwards, that are return addresses of the records from the outermost inwards.
std::size_t run_length(std::span<const Branch> branches, std::span<const std::uint64_t> chain, std::size_t entry) {
    std::size_t run = 0;
    while (run < branches.size() && run < entry &&
           returns_behind(chain[entry - run], branches[branches.size() - 1 - run].from))
        ++run;
    return run;
}

// Index of the outermost record's return address in the chain; 0 (the interrupted pc's index) if absent. The same call
// can occur more than once; the entry with the longest common run further in is chosen. The chain can lack frames
// without a frame pointer, but has none too many, so the index is at most the record's own.
std::size_t meeting_entry(std::span<const Branch> branches, std::span<const std::uint64_t> chain) {
    std::size_t best = 0, best_run = 0;
    for (std::size_t entry = std::min(branches.size(), chain.size() - 1); entry > 0; --entry) {
        const std::size_t run = run_length(branches, chain, entry);
        if (run <= best_run) continue;
        best = entry;
        best_run = run;
    }
    return best;
}

}  // namespace

std::vector<CodeAddress> frames_of_branches(std::uint64_t pc, std::span<const Branch> branches,
                                            std::span<const std::uint64_t> chain, std::size_t depth, bool& cut) {
    std::vector<CodeAddress> frames{{.value = pc, .return_address = false}};
    frames.reserve(1 + branches.size() + chain.size());
    for (const Branch& branch : branches) frames.push_back({.value = branch.from, .return_address = false});
    cut = depth != 0 && branches.size() >= depth;

    if (branches.empty() || chain.empty()) return frames;
    const std::size_t entry = meeting_entry(branches, chain);
    if (entry == 0 || entry + 1 == chain.size()) return frames;
    for (const std::uint64_t return_address : chain.subspan(entry + 1))
        frames.push_back({.value = return_address, .return_address = true});
    cut = false;
    return frames;
}

}  // namespace flamewire::unwind
