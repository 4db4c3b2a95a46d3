// Limits how far compressed bytes may expand. One rule applies to everything unpacked from untrusted files: symbols,
// imports, archives. Real data shrinks by a factor of 2 to 20. Large data that shrinks further was built to fill memory
// or a disk.
#pragma once

#include <algorithm>
#include <cstdint>

namespace flamewire {

inline constexpr std::uint64_t free_growth_bytes = std::uint64_t{64} << 20;
inline constexpr std::uint64_t max_growth_ratio = 64;

// The most bytes that `packed_bytes` may expand to: 64 MiB or 64 times the packed size, but never more than `cap`.
constexpr std::uint64_t growth_limit(std::uint64_t packed_bytes, std::uint64_t cap) {
    const std::uint64_t by_ratio = packed_bytes > cap / max_growth_ratio ? cap : packed_bytes * max_growth_ratio;
    return std::min(std::max(free_growth_bytes, by_ratio), cap);
}

}  // namespace flamewire
