// What statements may do: read, and create tables, indexes and views in memory.
#pragma once

#include <sqlite3.h>

#include <string>

namespace flamewire::views::sql {

// Removes SQLite's own ways to files, code and settings, and sets its limits. `refused` must outlive the connection; it
// becomes the name of what was refused last.
void restrict_access(sqlite3* connection, std::string& refused);

}  // namespace flamewire::views::sql
