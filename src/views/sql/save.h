// Writes the tables of a profile into a database file of SQLite, for other programs.
#pragma once

#include <string>

#include "base/result.h"
#include "profile/store/interruption.h"
#include "views/sql/context.h"

namespace flamewire::views::sql {

// Creates the file, which must not exist, with a table for each one of the profile. Removes it if this fails. closed:
// interrupted.
Result<bool> save(Profile profile, const profile::Interruption& interruption, const std::string& path);

}  // namespace flamewire::views::sql
