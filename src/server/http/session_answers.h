// /api/sessions, and GET, PATCH and DELETE of one of them.
#pragma once

#include <string_view>

#include "server/http/request.h"
#include "server/session/catalog.h"
#include "server/session/prune.h"

namespace flamewire::server {

// q offset limit. `keep`: the rules that the answer states.
Answer sessions_answer(Catalog& catalog, const RetentionRules& keep, const Request& request);
Answer session_answer(const Session& session);
// Changes name and tags.
Answer relabel_answer(Catalog& catalog, std::string_view id, const Request& request);
Answer remove_session_answer(Catalog& catalog, std::string_view id);

}  // namespace flamewire::server
