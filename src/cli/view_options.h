// Which part of a profile a command looks at.
#pragma once

#include <CLI/App.hpp>

#include <optional>
#include <vector>

#include "server/http/view.h"
#include "server/session/session.h"

namespace flamewire::cli {

// --event, --start, --end, --pid, --tid.
void add_view_options(CLI::App& command, server::ViewParameters& view);

// One view for each event that has samples, or of the one that was asked for. not_found, invalid: one sentence.
Result<std::vector<server::View>> views_of(const server::Session& session, const server::ViewParameters& parameters);

}  // namespace flamewire::cli
