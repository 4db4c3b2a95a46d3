// Answers of the HTTP API about one session, for the command line, which starts no server.
#pragma once

#include <string>

#include "base/result.h"
#include "server/session/session.h"
#include "views/view.h"

namespace flamewire::server {

// The page in one file, with the answers that a server would give it.
Result<std::string> saved_page(const Session& session, const views::Parameters& view);
// The counters of the whole target.
std::string counters_json(const Session& session);

}  // namespace flamewire::server
