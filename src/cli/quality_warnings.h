// What keeps the tables of a profile from being read as they stand: callers that are missing, functions without names.
#pragma once

#include <map>
#include <string>

#include "profile/store.h"
#include "server/http/view.h"
#include "server/session/session_info.h"
#include "symbol/module.h"

namespace flamewire::cli {

using ModuleReports = std::map<profile::ModuleId, symbol::ModuleReport>;

// Of each that concerns more than 5 % of the view: share and cause in one line, the remedy in the next, both with '#' before
// them. Empty if there is none. `reports`: as Session::module_reports() has them.
std::string quality_warnings(const profile::Store& store, const server::View& view, const server::SessionInfo& info,
                         const ModuleReports& reports);

}  // namespace flamewire::cli
