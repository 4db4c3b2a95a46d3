#include "views/sql/virtual_table.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>

#include "profile/store/interruption.h"

namespace flamewire::views::sql {
namespace {

using Comparison = Scan::Comparison;

// What SQLite keeps for each table, and its cursors.
struct Registered {
    const Table& table;
    Context& context;
};
struct Connected : sqlite3_vtab {
    Registered* registered = nullptr;
};
struct Opened : sqlite3_vtab_cursor {
    std::unique_ptr<Cursor> rows;
    bool at_end = true;
};

// Runs a part that may throw. SQLite is C, so exceptions must not reach it.
template <class Part>
int guarded(Part part) noexcept {
    try {
        return part();
    } catch (const profile::Interrupted&) {
        return SQLITE_INTERRUPT;
    } catch (const std::bad_alloc&) {
        return SQLITE_NOMEM;
    } catch (...) {
        return SQLITE_ERROR;
    }
}

const Registered& registered(const sqlite3_vtab* table) { return *static_cast<const Connected*>(table)->registered; }

int connect(sqlite3* connection, void* aux, int, const char* const*, sqlite3_vtab** made, char**) {
    return guarded([&] {
        auto* const entry = static_cast<Registered*>(aux);
        if (const int code = sqlite3_declare_vtab(connection, declaration(entry->table).c_str()); code != SQLITE_OK)
            return code;
        // Statements may use it in views.
        (void)sqlite3_vtab_config(connection, SQLITE_VTAB_INNOCUOUS);
        auto connected = std::make_unique<Connected>();
        connected->registered = entry;
        *made = connected.release();
        return SQLITE_OK;
    });
}

int disconnect(sqlite3_vtab* table) {
    delete static_cast<Connected*>(table);
    return SQLITE_OK;
}

std::optional<Comparison> comparison_of(unsigned char operation) {
    switch (operation) {
        case SQLITE_INDEX_CONSTRAINT_EQ: return Comparison::equal;
        case SQLITE_INDEX_CONSTRAINT_LT: return Comparison::less;
        case SQLITE_INDEX_CONSTRAINT_LE: return Comparison::less_or_equal;
        case SQLITE_INDEX_CONSTRAINT_GT: return Comparison::greater;
        case SQLITE_INDEX_CONSTRAINT_GE: return Comparison::greater_or_equal;
        default: return std::nullopt;
    }
}

// How many of `rows` a condition leaves.
double expected(Key key, Comparison comparison, double rows) {
    constexpr double frames_of_a_stack = 30, part_of_equal = 0.1, part_of_range = 0.3;
    if (comparison != Comparison::equal) return rows * part_of_range;
    if (key == Key::one) return 1;
    return key == Key::few ? std::min(rows, frames_of_a_stack) : rows * part_of_equal;
}

// A plan is a text with three characters for each argument of filter(): the column and the comparison.
constexpr int plan_width = 3;
constexpr int plan_base = 64;
constexpr char plan_first = '0';

int best_index(sqlite3_vtab* vtab, sqlite3_index_info* info) {
    return guarded([&] {
        const auto& [table, context] = registered(vtab);
        auto rows = static_cast<double>(std::max<std::size_t>(table.rows(context), 1));
        std::string plan;
        for (int i = 0; i < info->nConstraint; ++i) {
            const auto& constraint = info->aConstraint[i];
            const std::optional<Comparison> comparison = comparison_of(constraint.op);
            if (constraint.usable == 0 || constraint.iColumn < 0 || !comparison) continue;
            const Column& column = table.columns[static_cast<std::size_t>(constraint.iColumn)];
            if (column.key == Key::none || (*comparison != Comparison::equal && column.key != Key::range)) continue;
            // A scan compares texts byte by byte. SQLite applies other collations afterwards.
            if (std::string_view(sqlite3_vtab_collation(info, i)) != "BINARY") continue;
            plan += static_cast<char>(plan_first + constraint.iColumn / plan_base);
            plan += static_cast<char>(plan_first + constraint.iColumn % plan_base);
            plan += static_cast<char>(plan_first + static_cast<int>(*comparison));
            info->aConstraintUsage[i].argvIndex = static_cast<int>(plan.size()) / plan_width;
            rows = std::max(1.0, expected(column.key, *comparison, rows));
        }
        info->estimatedCost = rows;
        info->estimatedRows = std::llround(rows);
        if (plan.empty()) return SQLITE_OK;
        info->idxStr = sqlite3_mprintf("%s", plan.c_str());
        info->needToFreeIdxStr = 1;
        return info->idxStr == nullptr ? SQLITE_NOMEM : SQLITE_OK;
    });
}

int open_cursor(sqlite3_vtab*, sqlite3_vtab_cursor** made) {
    return guarded([&] {
        *made = std::make_unique<Opened>().release();
        return SQLITE_OK;
    });
}

int close_cursor(sqlite3_vtab_cursor* cursor) {
    delete static_cast<Opened*>(cursor);
    return SQLITE_OK;
}

// A blob or NULL selects nothing, so it has no value here.
Value value_of(sqlite3_value* value) {
    switch (sqlite3_value_type(value)) {
        case SQLITE_INTEGER: return sqlite3_value_int64(value);
        case SQLITE_FLOAT: return sqlite3_value_double(value);
        case SQLITE_TEXT: {
            const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(value));
            return text == nullptr ? Value()
                                   : std::string_view(text, static_cast<std::size_t>(sqlite3_value_bytes(value)));
        }
        default: return {};
    }
}

int next_row(sqlite3_vtab_cursor* cursor) {
    return guarded([&] {
        auto& opened = *static_cast<Opened*>(cursor);
        opened.at_end = !opened.rows->next();
        return SQLITE_OK;
    });
}

int filter(sqlite3_vtab_cursor* cursor, int, const char* plan, int count, sqlite3_value** values) {
    const int code = guarded([&] {
        auto& opened = *static_cast<Opened*>(cursor);
        const auto& [table, context] = registered(cursor->pVtab);
        Scan scan;
        for (int i = 0; i < count; ++i, plan += plan_width)
            scan.add(
                table.columns[static_cast<std::size_t>((plan[0] - plan_first) * plan_base + plan[1] - plan_first)].name,
                static_cast<Comparison>(plan[2] - plan_first), value_of(values[i]));
        opened.rows = table.open(context, scan);
        return SQLITE_OK;
    });
    return code == SQLITE_OK ? next_row(cursor) : code;
}

int at_end(sqlite3_vtab_cursor* cursor) { return static_cast<Opened*>(cursor)->at_end ? 1 : 0; }

struct SetResult {
    sqlite3_context* result;
    void operator()(std::monostate) const { sqlite3_result_null(result); }
    void operator()(std::int64_t number) const { sqlite3_result_int64(result, number); }
    void operator()(double number) const { sqlite3_result_double(result, number); }
    // The store keeps its texts as long as the connection.
    void operator()(std::string_view text) const {
        sqlite3_result_text64(result, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
    }
    void operator()(const std::string& text) const {
        sqlite3_result_text64(result, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
    }
};

int column_value(sqlite3_vtab_cursor* cursor, sqlite3_context* result, int column) {
    return guarded([&] {
        const Value value = static_cast<Opened*>(cursor)->rows->value(static_cast<std::size_t>(column));
        std::visit(SetResult{result}, value);
        return SQLITE_OK;
    });
}

int row_number(sqlite3_vtab_cursor* cursor, sqlite3_int64* row) {
    *row = static_cast<Opened*>(cursor)->rows->id();
    return SQLITE_OK;
}

// No xCreate: the table exists in every connection, under the name of its module. No xUpdate: it is read-only.
constexpr sqlite3_module virtual_table{
    .iVersion = 1,
    .xCreate = nullptr,
    .xConnect = connect,
    .xBestIndex = best_index,
    .xDisconnect = disconnect,
    .xDestroy = nullptr,
    .xOpen = open_cursor,
    .xClose = close_cursor,
    .xFilter = filter,
    .xNext = next_row,
    .xEof = at_end,
    .xColumn = column_value,
    .xRowid = row_number,
    .xUpdate = nullptr,
    .xBegin = nullptr,
    .xSync = nullptr,
    .xCommit = nullptr,
    .xRollback = nullptr,
    .xFindFunction = nullptr,
    .xRename = nullptr,
    .xSavepoint = nullptr,
    .xRelease = nullptr,
    .xRollbackTo = nullptr,
    .xShadowName = nullptr,
};

}  // namespace

std::string declaration(const Table& table) {
    std::string text = "CREATE TABLE ";
    text += table.name;
    for (const Column& column : table.columns) {
        text += &column == table.columns.data() ? " (" : ", ";
        text += column.name;
        text += ' ';
        text += column.type;
    }
    return text + ")";
}

int add_virtual_table(sqlite3* connection, const Table& table, Context& context) {
    auto entry = std::make_unique<Registered>(Registered{table, context});
    // SQLite frees the entry, also if this fails.
    return sqlite3_create_module_v2(connection, std::string(table.name).c_str(), &virtual_table, entry.release(),
                                    [](void* aux) { delete static_cast<Registered*>(aux); });
}

}  // namespace flamewire::views::sql
