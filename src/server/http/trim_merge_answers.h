// POST /api/sessions/<id>/cut and /api/sessions/merge: create sessions from sessions.
#pragma once

#include "server/http/request.h"
#include "server/session/catalog.h"
#include "server/session/symbolization.h"

namespace flamewire::server {

// Body: {"start", "end"} in ms of the session. The answer names the new session.
Answer trim_answer(Catalog& catalog, Symbolization& symbols, Session& session, const Request& request);

// Body: {"sessions": [id, …], "name"?}. The answer names the new session.
Answer merge_answer(Catalog& catalog, Symbolization& symbols, const Request& request);

}  // namespace flamewire::server
