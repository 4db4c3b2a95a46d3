// Options that select a part of a profile.
#pragma once

#include <CLI/App.hpp>

#include <optional>
#include <vector>

#include "server/session/session.h"
#include "views/view.h"

namespace flamewire::cli {

// --group; empty: none.
void add_group_option(CLI::App& command, std::string& group);

// --event, --start, --end, --pid, --tid, --container, --pod, --cgroup.
void add_view_options(CLI::App& command, views::Parameters& view);

// One view for each event that has samples, or for the requested event. not_found, invalid: one sentence.
Result<std::vector<views::View>> views_of(const server::Session& session, const views::Parameters& parameters);

// not_found: one of the containers, pods or groups has no process in the profile. The message lists those that have.
Result<bool> check_places(const views::Parameters& parameters, const profile::Store& store);

}  // namespace flamewire::cli
