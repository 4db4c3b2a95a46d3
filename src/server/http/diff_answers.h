// Two profiles compared: what a view takes is the one at hand ("after"), the same names with "base_" before them are
// the baseline ("before"). Both may be views of one session: times, threads, processes.
#pragma once

#include "server/http/request.h"
#include "server/session/session.h"

namespace flamewire::server {

// The call tree of both sides.
Answer diff_answer(const Session& before, const Session& after, const Request& request);
// The functions of both sides, by how much their own share changed.
Answer diff_functions_answer(const Session& before, const Session& after, const Request& request);

}  // namespace flamewire::server
