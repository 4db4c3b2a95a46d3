// Formats tables and trees of a profile as text. Pure functions.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "cli/terminal.h"
#include "profile/query/grouping.h"
#include "profile/query/query.h"
#include "server/session/session_info.h"
#include "views/view.h"

namespace flamewire::cli {

struct TableOptions {
    double percent_limit = 0.5;  // smaller rows and subtrees are omitted; tables count omitted rows
    std::size_t most_rows = 0;   // 0: all
    bool by_total = false;       // sort functions by total instead of self
};

// Lines that begin with '#': what was recorded, when and where, and which data is missing.
std::string session_head(const server::SessionInfo& info);
// For each notice its text and its remedy, as lines that begin with '#'.
std::string notice_lines(std::span<const wire::Notice> notices);
// A line that begins with '#': samples, weight and unnamed share of one event.
std::string event_head(const profile::Store& store, const views::View& view);

// One row per function: self and total share, samples, module, name. `rows` as in query.h.
std::string function_table(const profile::Store& store, const views::View& view,
                           const std::vector<profile::FunctionRow>& rows, const TableOptions& options,
                           const OutputStyle& style);
// One row per node, callers before callees. Lines are indented only where calls branch.
std::string call_tree_text(const profile::Store& store, const profile::GroupedTree& tree, const TableOptions& options,
                           const OutputStyle& style);

// Columns of valid UTF-8, and such a text shortened in the middle to at most `columns` (at least 3).
std::size_t width_of(std::string_view text);
std::string shortened(const std::string& text, std::size_t columns);

// "name  [module]", without control characters. Names are shortened in the middle to fit `width` columns (0:
// unlimited).
std::string shown_function(std::string_view name, std::string_view module, unsigned width);

}  // namespace flamewire::cli
