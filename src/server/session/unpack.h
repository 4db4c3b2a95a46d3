// Unpacks compressed files of other tools: gzip (always used by pprof) and zstd (chunks of PerfLens). The result is an
// unnamed file, so that a reader can seek in it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "profile/formats/import.h"

namespace flamewire::server {

// As large as a session's file may be (--session-size).
inline constexpr std::uint64_t max_unpacked_import_bytes = std::uint64_t{32} << 30;

bool is_compressed(std::string_view beginning);

struct Unpacked {
    UniqueFd fd;
    std::uint64_t size = 0;
    bool truncated = false;  // the compressed file ended early; the part before is here
};
// Unpacks all members or frames of `from`, one after the other, into a file in `folder` that is deleted when it is
// closed. too_large: the result exceeds growth_limit(), which the message states. `progress` gets the bytes read.
Result<Unpacked> unpack(profile::ImportSource& from, const std::string& folder,
                        const std::function<void(std::uint64_t)>& progress);

}  // namespace flamewire::server
