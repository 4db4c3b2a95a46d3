#include "views/sql/access.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "views/sql/database.h"

namespace flamewire::views::sql {
namespace {

// Pragmas that only report.
constexpr std::array<std::string_view, 6> allowed_pragmas{"table_info", "table_xinfo", "table_list",
                                                          "index_list", "index_info",  "function_list"};
// Functions that load code, or exist for tests of SQLite.
constexpr std::array<std::string_view, 3> refused_functions{"load_extension", "fts3_tokenizer", "sqlite_log"};

// Copied without allocating.
constexpr std::size_t longest_name = 40;

std::string_view text_of(const char* text) { return text == nullptr ? std::string_view() : std::string_view(text); }

std::string_view refused_action(int action, std::string_view first, std::string_view second) {
    switch (action) {
        case SQLITE_ATTACH: return "ATTACH or VACUUM";
        case SQLITE_DETACH: return "DETACH";
        case SQLITE_PRAGMA: return std::ranges::find(allowed_pragmas, first) != allowed_pragmas.end() ? "" : "PRAGMA";
        case SQLITE_FUNCTION:
            return std::ranges::find(refused_functions, second) != refused_functions.end() ? second : "";
        case SQLITE_CREATE_VTABLE: return "CREATE VIRTUAL TABLE";
        case SQLITE_DROP_VTABLE: return "DROP of a table of the profile";
        case SQLITE_ANALYZE: return "ANALYZE";
        case SQLITE_SELECT:
        case SQLITE_READ:
        case SQLITE_RECURSIVE:
        case SQLITE_TRANSACTION:
        case SQLITE_SAVEPOINT:
        case SQLITE_REINDEX:
        case SQLITE_ALTER_TABLE:
        case SQLITE_INSERT:
        case SQLITE_UPDATE:
        case SQLITE_DELETE:
        case SQLITE_CREATE_TABLE:
        case SQLITE_CREATE_TEMP_TABLE:
        case SQLITE_CREATE_INDEX:
        case SQLITE_CREATE_TEMP_INDEX:
        case SQLITE_CREATE_VIEW:
        case SQLITE_CREATE_TEMP_VIEW:
        case SQLITE_CREATE_TRIGGER:
        case SQLITE_CREATE_TEMP_TRIGGER:
        case SQLITE_DROP_TABLE:
        case SQLITE_DROP_TEMP_TABLE:
        case SQLITE_DROP_INDEX:
        case SQLITE_DROP_TEMP_INDEX:
        case SQLITE_DROP_VIEW:
        case SQLITE_DROP_TEMP_VIEW:
        case SQLITE_DROP_TRIGGER:
        case SQLITE_DROP_TEMP_TRIGGER: return "";
        default: return "this statement";
    }
}

int authorize(void* refused, int action, const char* first, const char* second, const char*, const char*) noexcept {
    const std::string_view found = refused_action(action, text_of(first), text_of(second));
    if (found.empty()) return SQLITE_OK;
    static_cast<std::string*>(refused)->assign(found.substr(0, longest_name));
    return SQLITE_DENY;
}

}  // namespace

void restrict_access(sqlite3* connection, std::string& refused) {
    (void)sqlite3_db_config(connection, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    (void)sqlite3_db_config(connection, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    (void)sqlite3_db_config(connection, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, nullptr);
    (void)sqlite3_hard_heap_limit64(max_memory_bytes);
    sqlite3_limit(connection, SQLITE_LIMIT_LENGTH, max_value_bytes);
    sqlite3_limit(connection, SQLITE_LIMIT_SQL_LENGTH, max_statement_bytes);
    sqlite3_limit(connection, SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_limit(connection, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000);
    sqlite3_limit(connection, SQLITE_LIMIT_TRIGGER_DEPTH, 10);
    refused.reserve(longest_name);
    (void)sqlite3_set_authorizer(connection, authorize, &refused);
}

}  // namespace flamewire::views::sql
