// The recorded machine's health as answers.
#pragma once

#include "server/http/request.h"
#include "server/session/session.h"

namespace flamewire::server {

// {type: newest frame}, and in `processes` the frames of all processes of the newest round.
Answer metrics_current_answer(const Session& session);
// type= start= end= (ms): [frame]
Answer metrics_history_answer(const Session& session, const Request& request);

}  // namespace flamewire::server
