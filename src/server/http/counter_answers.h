// What was counted, as an answer: the counters of the whole target, or of each thread or CPU, in the order in which they
// were asked for, with the figures that `perf stat` derives from them.
#pragma once

#include "server/http/request.h"
#include "server/session/session.h"

namespace flamewire::server {

Answer counters_answer(const Session& session, const Request& request);

}  // namespace flamewire::server
