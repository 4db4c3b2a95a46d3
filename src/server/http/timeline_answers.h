// The time axis of a session: samples over time, of all, of each thread or of each CPU, and marks. docs/openapi.yaml has
// the shape.
#pragma once

#include "server/http/request.h"
#include "server/session/session.h"

namespace flamewire::server {

Answer timeline_answer(const Session& session, const Request& request);

}  // namespace flamewire::server
