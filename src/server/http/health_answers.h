// The health of the machine that a session was recorded on, as answers.
#pragma once

#include "server/http/request.h"
#include "server/session/session.h"

namespace flamewire::server {

// {type: newest frame}, and in `processes` those of all processes of the newest round.
Answer metrics_current_answer(const Session& session);
// type= start= end= (ms): [frame]
Answer metrics_history_answer(const Session& session, const Request& request);

}  // namespace flamewire::server
