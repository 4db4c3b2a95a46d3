// Options that select a part of a profile.
#pragma once

#include <CLI/App.hpp>

#include <optional>
#include <vector>

#include "server/http/view.h"
#include "server/session/session.h"

namespace flamewire::cli {

// --group; empty: none.
void add_group_option(CLI::App& command, std::string& group);

// --event, --start, --end, --pid, --tid, --container, --pod, --cgroup.
void add_view_options(CLI::App& command, server::ViewParameters& view);

// One view for each event that has samples, or for the requested event. not_found, invalid: one sentence.
Result<std::vector<server::View>> views_of(const server::Session& session, const server::ViewParameters& parameters);

// not_found: one of the containers, pods or groups has no process in the profile. The message lists those that have.
Result<bool> check_places(const server::ViewParameters& parameters, const profile::Store& store);

}  // namespace flamewire::cli
