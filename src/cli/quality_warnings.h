// Warnings about a profile whose tables mislead: incomplete call chains, functions without names.
#pragma once

#include <map>
#include <string>

#include "profile/store/store.h"
#include "server/http/view.h"
#include "server/session/session_info.h"
#include "symbol/module.h"

namespace flamewire::cli {

using ModuleReports = std::map<profile::ModuleId, symbol::ModuleReport>;

// One warning for each problem that affects more than 5 % of the view: share and cause in the first line, the remedy in
// the second. Both lines begin with '#'. Empty if there is none. `reports` come from Session::module_reports().
std::string quality_warnings(const profile::Store& store, const server::View& view, const server::SessionInfo& info,
                             const ModuleReports& reports);

}  // namespace flamewire::cli
