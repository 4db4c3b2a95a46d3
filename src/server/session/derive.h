// Sessions made of sessions: a window of one, or several as one. They are sessions like any other, with a stream of their
// own; the ones that they are made of stay as they are. What is read is the stream, not the store: nothing is coarser than
// it was recorded.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "server/session/catalog.h"

namespace flamewire::server {

// The rows that begin in [start_ns, end_ns), CLOCK_MONOTONIC of the target, and what else happened then. not_found when
// there are none. Blocking, for long.
Result<std::shared_ptr<Session>> cut_session(Catalog& catalog, Session& from, std::uint64_t start_ns,
                                             std::uint64_t end_ns);

// All rows of several sessions, each at its own time on the server's wall clock. Processes of different machines (or
// boots) stay apart; a notice says what differs. Counters and health are each machine's own and stay behind. `name`: the
// target that is shown; empty: one is made of theirs. Blocking, for long.
Result<std::shared_ptr<Session>> merge_sessions(Catalog& catalog, std::span<const std::shared_ptr<Session>> from,
                                                const std::string& name);

}  // namespace flamewire::server
