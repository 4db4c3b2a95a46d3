// Hits of traced events as answers: a list, and a table by the values of a key.
#pragma once

#include "server/http/request.h"
#include "server/session/session.h"

namespace flamewire::server {

Answer hits_answer(const Session& session, const Request& request);
Answer hit_table_answer(const Session& session, const Request& request);

}  // namespace flamewire::server
