// Compares two profiles. The view's parameters select the current profile ("after"); the same names with the prefix
// "base_" select the baseline ("before"). Both may be views of one session: times, threads, processes.
#pragma once

#include "server/http/request.h"
#include "server/session/session.h"

namespace flamewire::server {

// The call tree of both sides.
Answer diff_answer(const Session& before, const Session& after, const Request& request);
// The functions of both sides, sorted by the change of their self share.
Answer diff_functions_answer(const Session& before, const Session& after, const Request& request);

}  // namespace flamewire::server
