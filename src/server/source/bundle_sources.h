// Stores the source files of a session's lines beside its stream, for machines that do not have them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "server/session/session.h"
#include "server/source/source_lookup.h"

namespace flamewire::server {

struct BundleSourcesResult {
    std::uint64_t files = 0, bytes = 0;  // totals, including files kept earlier that are not found now
    std::vector<std::string> not_found;  // neither found now nor kept earlier, heaviest first
    std::vector<std::string> no_room;    // left out because the session has reached its limit
};

// Stores the heaviest files first, up to the limits of source_bundle.h, in one atomic step. A file that is found now
// replaces the copy kept earlier. io: the disk refused the write. Blocking.
Result<BundleSourcesResult> bundle_sources(const Session& session, SourceLookup& sources);

}  // namespace flamewire::server
