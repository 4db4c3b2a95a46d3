// The time axis of a session: samples over time, in total or per thread or CPU, and marks. docs/openapi.yaml has the
// format.
#pragma once

#include "server/http/request.h"
#include "server/session/session.h"

namespace flamewire::server {

Answer timeline_answer(const Session& session, const Request& request);

}  // namespace flamewire::server
