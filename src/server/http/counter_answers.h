// Counter values as an answer: of the whole target, or per thread or CPU.
#pragma once

#include "server/http/request.h"
#include "server/session/session.h"

namespace flamewire::server {

Answer counters_answer(const Session& session, const Request& request);

}  // namespace flamewire::server
