// Files of other tools come compressed: by gzip (pprof writes nothing else), by zstd (chunks of PerfLens). They are
// unpacked into a file without a name, so that a reader may go back and forth in it.
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
    bool truncated = false;  // the compressed file ended too early; what came before is here
};
// All members or frames of `from`, one after the other. The file lies in `folder` and is gone when it is closed.
// too_large: it grows beyond growth_limit(), of which the sentence tells. `progress` is told the bytes read.
Result<Unpacked> unpack(profile::ImportSource& from, const std::string& folder,
                        const std::function<void(std::uint64_t)>& progress);

}  // namespace flamewire::server
