#include "agent/pipeline/callchain.h"

namespace flamewire::agent {
namespace {

// Markers are small negative numbers.
constexpr std::uint64_t context_kernel = static_cast<std::uint64_t>(-128);
constexpr std::uint64_t context_user = static_cast<std::uint64_t>(-512);
constexpr std::uint64_t context_max = static_cast<std::uint64_t>(-4095);

enum class Part { kernel, user, other };

Part part_of(std::uint64_t marker) {
    if (marker == context_kernel) return Part::kernel;
    if (marker == context_user) return Part::user;
    return Part::other;
}

}  // namespace

std::size_t split_callchain(std::span<const std::uint64_t> chain, bool user_mode, std::vector<ChainFrame>& frames) {
    Part part = user_mode ? Part::user : Part::kernel;
    bool first = true;
    std::size_t stored = 0;
    for (const std::uint64_t entry : chain) {
        if (entry >= context_max) {
            part = part_of(entry);
            first = true;
            continue;
        }
        ++stored;
        if (part != Part::other && entry != 0) frames.push_back({entry, part == Part::kernel, !first});
        first = false;
    }
    return stored;
}

}  // namespace flamewire::agent
