// POST /api/sessions/<id>/cut and /api/sessions/merge: sessions made of sessions.
#pragma once

#include "server/http/request.h"
#include "server/session/catalog.h"
#include "server/session/symbolization.h"

namespace flamewire::server {

// {"start", "end"} in ms of the session. The answer names the new one.
Answer cut_answer(Catalog& catalog, Symbolization& symbols, Session& session, const Request& request);

// {"sessions": [id, …], "name"?}. The same.
Answer merge_answer(Catalog& catalog, Symbolization& symbols, const Request& request);

}  // namespace flamewire::server
