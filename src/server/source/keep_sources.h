// Keeps the source files that a session's lines are in beside its stream, for machines that do not have them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "server/session/session.h"
#include "server/source/source_lookup.h"

namespace flamewire::server {

struct SourcesKept {
    std::uint64_t files = 0, bytes = 0;  // in all, with those that were kept before and are not found now
    std::vector<std::string> not_found;  // neither here nor kept before, heaviest first
    std::vector<std::string> no_room;    // left out, as the session keeps no more
};

// Heaviest files first, up to the limits of kept_sources.h, in one step. Those that are found now replace what was kept
// of them before. io: the disk refused it. Blocking.
Result<SourcesKept> keep_sources(const Session& session, SourceLookup& sources);

}  // namespace flamewire::server
