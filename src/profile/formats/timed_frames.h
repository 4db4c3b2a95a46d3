// Helpers that importers of JSON profiles share: conversions from times to rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "profile/formats/import.h"
#include "profile/formats/import_names.h"
#include "profile/formats/recording_builder.h"

namespace flamewire::profile {

// Longer times are errors in the file: this is a hundred days.
inline constexpr double max_span_ns = 8.64e15;

inline std::uint64_t clamped_ns(double ns) {
    return !(ns > 0) ? 0 : static_cast<std::uint64_t>(std::min(ns, max_span_ns));
}

inline std::uint64_t bucket_of(std::uint64_t offset_ns) {
    return (import_moment_ns + offset_ns) / wire::default_bucket_ns;
}

inline std::uint32_t narrow_count(double count) {
    constexpr double most = std::numeric_limits<std::uint32_t>::max();
    return !(count > 1) ? 1 : static_cast<std::uint32_t>(std::min(count, most));
}

}  // namespace flamewire::profile
