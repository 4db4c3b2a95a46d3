// Warnings about a profile whose tables mislead: incomplete call chains, functions without names.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "profile/query/unwinding.h"
#include "profile/store/store.h"
#include "symbol/types/module_report.h"
#include "views/view.h"
#include "wire/batch.h"

namespace flamewire::views {

using ModuleReports = std::map<profile::ModuleId, symbol::ModuleReport>;

// One warning for each problem that affects more than 5 % of the view: its share and cause, and the remedy. `notices`:
// of the recording.
std::vector<wire::Notice> quality_warnings(const profile::Store& store, const View& view,
                                           const profile::Unwinding& unwinding, std::span<const wire::Notice> notices,
                                           const ModuleReports& reports);

// Why JIT code has no symbols, from the agent's notice.
symbol::ModuleReport without_names(const profile::Store& store, const profile::Module& module);

}  // namespace flamewire::views
