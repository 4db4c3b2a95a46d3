// Kernel and user frames of a raw call chain (perf/callchain.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/code_address.h"

namespace flamewire::agent {

struct ChainFrame {
    std::uint64_t address = 0;
    bool kernel = false;
    bool return_address = false;  // of `address`, see CodeAddress
    bool joined = false;          // copied from the thread's previous samples
    bool caller_missing = false;  // unwind::Frame::caller_missing

    [[nodiscard]] CodeAddress code_address() const { return {address, return_address}; }
    bool operator==(const ChainFrame&) const = default;
};

// Appends the frames of `chain`, innermost first, to `frames`. Leaves out markers, zero addresses (the end of a user's
// frame-pointer list) and guest frames, which belong to another machine. `user_mode` classifies a chain without
// markers. Returns the number of addresses that the kernel stored. At the kernel's limit, the chain was truncated.
std::size_t split_callchain(std::span<const std::uint64_t> chain, bool user_mode, std::vector<ChainFrame>& frames);

}  // namespace flamewire::agent
