// Offers a Table to SQLite as an eponymous, read-only virtual table.
#pragma once

#include <sqlite3.h>

#include "views/sql/context.h"
#include "views/sql/table.h"

namespace flamewire::views::sql {

// Both must outlive the connection. Returns SQLite's result code.
int add_virtual_table(sqlite3* connection, const Table& table, Context& context);

// "CREATE TABLE name (column TYPE, …)".
std::string declaration(const Table& table);

}  // namespace flamewire::views::sql
