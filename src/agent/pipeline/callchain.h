// A raw perf call chain split into its kernel and user frames. Source: linux/perf_event.h, enum perf_callchain_context.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace flamewire::agent {

struct ChainFrame {
    std::uint64_t address = 0;
    bool kernel = false;
    bool return_address = false;  // else the instruction that ran
    bool joined = false;          // not of this sample, but of the thread's last ones
    bool caller_missing = false;  // unwind::Frame::caller_missing
    bool operator==(const ChainFrame&) const = default;
};

// Appends the frames of `chain`, innermost first, to `frames`. Markers and zero addresses (the end of a user's
// frame-pointer list) are left out. Guest frames belong to another machine and are left out, too. A chain without
// marker belongs to `user_mode`'s side. Returns the number of addresses that the kernel had stored: at its limit the
// chain was cut.
std::size_t split_callchain(std::span<const std::uint64_t> chain, bool user_mode, std::vector<ChainFrame>& frames);

}  // namespace flamewire::agent
