// The maximum size of an export. Exports are built in memory, and a small session can expand to far more text than it
// takes itself: a long name in each of many frames, or a deep stack below each of many leaves.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string_view>

#include "base/result.h"

namespace flamewire::profile {

inline constexpr std::size_t max_export_bytes = std::size_t{512} << 20;

// `as`: what the export is, for example "a picture".
inline std::unexpected<Error> export_too_large(std::string_view as, std::size_t max_bytes) {
    return fail(ErrorCode::too_large,
                fmt::format("as {} this would have more than {} MiB: take a shorter time, one event or one thread", as,
                            max_bytes >> 20));
}

}  // namespace flamewire::profile
