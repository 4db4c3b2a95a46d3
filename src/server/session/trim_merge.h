// Trims a session to a time window, and merges several sessions into one. The results are normal sessions
// with their own streams; the originals stay unchanged. The source is the stream, not the store, so rows keep their
// recorded resolution.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "server/session/catalog.h"

namespace flamewire::server {

// Copies the rows that begin in [start_ns, end_ns), CLOCK_MONOTONIC of the target, and the other records of that time.
// not_found: there are no rows. Blocking, for long.
Result<std::shared_ptr<Session>> trim_session(Catalog& catalog, Session& from, std::uint64_t start_ns,
                                              std::uint64_t end_ns);

// Merges all rows of several sessions by the server's wall clock. Processes of different machines (or boots) stay
// separate, and a notice lists the differences. Counters and health belong to one machine and are not copied. `name`:
// the displayed target; empty: built from the targets of `from`. Blocking, for long.
Result<std::shared_ptr<Session>> merge_sessions(Catalog& catalog, std::span<const std::shared_ptr<Session>> from,
                                                const std::string& name);

}  // namespace flamewire::server
