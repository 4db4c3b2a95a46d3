// Warnings about a profile whose tables mislead: incomplete call chains, functions without names.
#pragma once

#include <map>
#include <vector>

#include "profile/store/store.h"
#include "server/http/request.h"
#include "server/http/view.h"
#include "server/session/session.h"
#include "server/session/session_info.h"
#include "symbol/module.h"
#include "wire/batch.h"

namespace flamewire::server {

using ModuleReports = std::map<profile::ModuleId, symbol::ModuleReport>;

// One warning for each problem that affects more than 5 % of the view: its share and cause, and the remedy. `reports`
// come from SessionSymbols::reports().
std::vector<wire::Notice> quality_warnings(const profile::Store& store, const View& view, const SessionInfo& info,
                                           const ModuleReports& reports);

// GET /api/warnings: the same for a view of a session.
Answer warnings_answer(const Session& session, const Request& request);

}  // namespace flamewire::server
