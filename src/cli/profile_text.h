// Tables and trees of a profile as text. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "cli/terminal.h"
#include "profile/query/grouping.h"
#include "profile/query/query.h"
#include "server/http/view.h"
#include "server/session/session_info.h"

namespace flamewire::cli {

struct TableOptions {
    double percent_limit = 0.5;  // rows and subtrees below it are left out, and counted
    std::size_t most_rows = 0;   // 0: all
    bool by_total = false;       // order of functions; else by self
};

// What was recorded, when and where, and what is missing of it: lines that begin with '#'.
std::string session_head(const server::SessionInfo& info);
// Samples, weight and unnamed share of one event: a line that begins with '#'.
std::string event_head(const profile::Store& store, const server::View& view);

// A row a function: self and total share, samples, module, name. `rows` as query.h gives them.
std::string function_table(const profile::Store& store, const server::View& view,
                           const std::vector<profile::FunctionRow>& rows, const TableOptions& options,
                           const Look& look);
// A row a node, callers before callees; only where calls part the lines are indented.
std::string call_tree_text(const profile::Store& store, const profile::GroupedTree& tree, const TableOptions& options,
                           const Look& look);

// Sum of a view.
profile::Weight total_of(const profile::Store& store, const profile::Filter& filter);

// "name  [module]", without control characters, cut to `width` columns (0: not at all) in the midst of the name.
std::string shown_function(std::string_view name, std::string_view module, unsigned width);

}  // namespace flamewire::cli
