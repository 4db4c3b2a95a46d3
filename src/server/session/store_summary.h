// What a SessionInfo reports about the store of its session.
#pragma once

#include <cstdint>

#include "profile/store/store.h"
#include "server/session/session_info.h"

namespace flamewire::server {

// Sets the members that follow from the store, under shared access to it. `first_row_ns`: see SessionStore. `thorough`:
// including what requires a pass over the rows.
void summarize_store(const profile::Store& store, std::uint64_t first_row_ns, bool thorough, SessionInfo& info);

}  // namespace flamewire::server
