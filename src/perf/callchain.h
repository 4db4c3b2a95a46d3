// Splits a raw call chain into frames. Source: linux/perf_event.h, enum perf_callchain_context.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "perf/abi.h"
#include "perf/record.h"

namespace flamewire::perf {

// The mode of the entries after a marker.
constexpr CpuMode mode_of_marker(std::uint64_t marker) {
    switch (marker) {
        case context::kernel: return CpuMode::kernel;
        case context::user: return CpuMode::user;
        case context::hypervisor: return CpuMode::hypervisor;
        case context::guest:
        case context::guest_kernel: return CpuMode::guest_kernel;
        case context::guest_user: return CpuMode::guest_user;
        default: return CpuMode::unknown;
    }
}

// Of a chain whose user part follows in a DeferredCallchain: its cookie. The two last entries are the marker and this.
constexpr std::optional<std::uint64_t> deferred_cookie(std::span<const std::uint64_t> chain) {
    if (chain.size() < 2 || chain[chain.size() - 2] != context::user_deferred) return std::nullopt;
    return chain.back();
}

// Calls take(address, mode, return_address) for each frame, innermost first. Leaves out markers, zero addresses (the
// end of a user's frame-pointer list), and what follows a marker that is not known here: after that of a deferred user
// chain there is no address. `mode` is that of entries before the first marker. Returns the number of entries that the
// kernel stored: at its limit, the chain was truncated.
template <class Take>
std::size_t split_callchain(std::span<const std::uint64_t> chain, CpuMode mode, Take&& take) {
    bool known = true;
    bool first = true;
    std::size_t stored = 0;
    for (const std::uint64_t entry : chain) {
        if (entry >= context::max) {
            mode = mode_of_marker(entry);
            known = mode != CpuMode::unknown;
            first = true;
            continue;
        }
        ++stored;
        if (known && entry != 0) take(entry, mode, !first);
        first = false;
    }
    return stored;
}

}  // namespace flamewire::perf
