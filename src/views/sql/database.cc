#include "views/sql/database.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sqlite3.h>

#include <algorithm>
#include <ranges>
#include <utility>

#include "views/sql/access.h"
#include "views/sql/tables.h"
#include "views/sql/virtual_table.h"

namespace flamewire::views::sql {
namespace {

struct Close {
    void operator()(sqlite3* connection) const { (void)sqlite3_close_v2(connection); }
    void operator()(sqlite3_stmt* statement) const { (void)sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Close>;

constexpr int steps_between_checks = 10'000;

Cell cell_of(sqlite3_stmt* statement, int column) {
    const auto size = [&] { return static_cast<std::size_t>(sqlite3_column_bytes(statement, column)); };
    switch (sqlite3_column_type(statement, column)) {
        case SQLITE_INTEGER: return sqlite3_column_int64(statement, column);
        case SQLITE_FLOAT: return sqlite3_column_double(statement, column);
        case SQLITE_TEXT: {
            const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
            return text == nullptr ? std::string_view() : std::string_view(text, size());
        }
        case SQLITE_BLOB: {
            const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement, column));
            return Blob{bytes == nullptr ? std::string_view() : std::string_view(bytes, size())};
        }
        default: return {};
    }
}

// "line 2, column 5" of a byte in the text.
std::string place_in(std::string_view text, std::size_t offset) {
    const std::string_view before = text.substr(0, offset);
    const std::size_t line_start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
    const auto starts_character = [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; };
    return fmt::format("line {}, column {}", std::ranges::count(before, '\n') + 1,
                       std::ranges::count_if(before.substr(line_start), starts_character) + 1);
}

std::string names_of_tables() {
    return fmt::format("{}", fmt::join(tables() | std::views::transform(&Table::name), ", "));
}

bool is_word(char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

// Where a word is in the text, from `at` on; npos: nowhere.
std::size_t find_word(std::string_view text, std::string_view word, std::size_t at) {
    for (; !word.empty() && (at = text.find(word, at)) != std::string_view::npos; ++at) {
        const std::size_t end = at + word.size();
        if ((at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]))) return at;
    }
    return std::string_view::npos;
}

// The columns of the tables that the statement at `start` names.
std::string columns_in(std::string_view all, std::size_t start) {
    constexpr std::size_t most = 3;
    std::string list;
    std::size_t listed = 0;
    for (const Table& table : tables()) {
        if (find_word(all, table.name, start) == std::string_view::npos || ++listed > most) continue;
        const auto names = table.columns | std::views::transform(&Column::name);
        list += fmt::format("; {} has {}", table.name, fmt::join(names, ", "));
    }
    return list;
}

}  // namespace

struct Database::Inside {
    Inside(Profile profile, const profile::Interruption& stop, std::uint64_t most)
        : context(std::move(profile)), interruption(stop), max_steps(most) {}

    Context context;
    const profile::Interruption& interruption;
    std::uint64_t max_steps, steps = 0;
    std::string refused;
    std::unique_ptr<sqlite3, Close> connection;

    Result<bool> connect();
    Result<Statement> prepare(const std::string& all, std::size_t& at);
    Result<bool> run(sqlite3_stmt* statement, const Sink& sink);
    [[nodiscard]] Error error_at(int code, std::string_view all, std::size_t start) const;

    [[nodiscard]] Error refusal() const {
        return {.code = ErrorCode::invalid,
                .message = fmt::format("{} is not allowed: statements only read the profile", refused)};
    }

    static int check_progress(void* inside);
};

int Database::Inside::check_progress(void* inside) {
    auto& self = *static_cast<Inside*>(inside);
    self.steps += steps_between_checks;
    return self.interruption.asked() || (self.max_steps != 0 && self.steps > self.max_steps) ? 1 : 0;
}

Result<bool> Database::Inside::connect() {
    sqlite3* opened = nullptr;
    int code =
        sqlite3_open_v2(":memory:", &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
    connection.reset(opened);
    // No temporary files.
    if (code == SQLITE_OK) code = sqlite3_exec(opened, "PRAGMA temp_store = MEMORY", nullptr, nullptr, nullptr);
    for (const Table& table : tables())
        if (code == SQLITE_OK) code = add_virtual_table(opened, table, context);
    if (code != SQLITE_OK) return fail(ErrorCode::io, fmt::format("cannot start SQLite: {}", sqlite3_errstr(code)));
    restrict_access(opened, refused);
    sqlite3_progress_handler(opened, steps_between_checks, check_progress, this);
    return true;
}

Error Database::Inside::error_at(int code, std::string_view all, std::size_t start) const {
    switch (code) {
        case SQLITE_INTERRUPT:
            if (!interruption.asked())
                return {.code = ErrorCode::too_large, .message = "the statements take too long: select less"};
            return {.code = ErrorCode::closed, .message = "interrupted"};
        case SQLITE_NOMEM:
            return {.code = ErrorCode::too_large,
                    .message = fmt::format("the statements need more than {} MiB of memory: sort or group fewer rows",
                                           max_memory_bytes >> 20)};
        case SQLITE_TOOBIG:
            return {.code = ErrorCode::too_large,
                    .message = fmt::format("a text or blob has more than {} MiB, or a statement more than {} MiB",
                                           max_value_bytes >> 20, max_statement_bytes >> 20)};
        case SQLITE_AUTH: return refusal();
        default: break;
    }
    if (!refused.empty()) return refusal();
    std::string message = sqlite3_errmsg(connection.get());
    const int offset = sqlite3_error_offset(connection.get());
    std::size_t at = offset < 0 ? std::string_view::npos : start + static_cast<std::size_t>(offset);
    std::string remedy;
    if (constexpr std::string_view no_table = "no such table: "; message.starts_with(no_table)) {
        at = find_word(all, std::string_view(message).substr(no_table.size()), start);
        remedy = "; the tables are " + names_of_tables();
    }
    if (message.starts_with("no such column: ")) remedy = columns_in(all, start);
    if (at < all.size()) message += ", at " + place_in(all, at);
    return {.code = ErrorCode::invalid, .message = message + remedy};
}

// The statement at `at`, which moves behind it. Null: only blanks and comments are left.
Result<Statement> Database::Inside::prepare(const std::string& all, std::size_t& at) {
    const std::size_t start = at;
    refused.clear();
    sqlite3_stmt* made = nullptr;
    const char* rest = nullptr;
    // With the terminating NUL, SQLite does not copy the text.
    const int code =
        sqlite3_prepare_v3(connection.get(), all.c_str() + at, static_cast<int>(all.size() - at + 1), 0, &made, &rest);
    Statement statement(made);
    if (code != SQLITE_OK) return std::unexpected(error_at(code, all, start));
    at = static_cast<std::size_t>(rest - all.c_str());
    return statement;
}

Result<bool> Database::Inside::run(sqlite3_stmt* statement, const Sink& sink) {
    const int columns = sqlite3_column_count(statement);
    std::vector<std::string> names;
    names.reserve(static_cast<std::size_t>(columns));
    for (int i = 0; i < columns; ++i) names.emplace_back(sqlite3_column_name(statement, i));
    std::vector<Cell> cells(names.size());
    if (columns > 0) sink.begin(names);
    int code = sqlite3_step(statement);
    for (; code == SQLITE_ROW; code = sqlite3_step(statement)) {
        for (int i = 0; i < columns; ++i) cells[static_cast<std::size_t>(i)] = cell_of(statement, i);
        if (!sink.row(cells)) return fail(ErrorCode::closed, "no more rows are wanted");
    }
    if (code != SQLITE_DONE) return std::unexpected(error_at(code, {}, 0));
    if (columns > 0) sink.end();
    return true;
}

Database::Database(std::unique_ptr<Inside> inside) : inside_(std::move(inside)) {}
Database::Database(Database&&) noexcept = default;
Database::~Database() = default;

Result<Database> Database::open(Profile profile, const profile::Interruption& interruption, std::uint64_t max_steps) {
    auto inside = std::make_unique<Inside>(std::move(profile), interruption, max_steps);
    TRY(inside->connect());
    return Database(std::move(inside));
}

Result<bool> Database::run(std::string_view statements, const Sink& sink) {
    if (statements.size() > static_cast<std::size_t>(max_statement_bytes))
        return std::unexpected(inside_->error_at(SQLITE_TOOBIG, {}, 0));
    if (const std::size_t end = statements.find('\0'); end != std::string_view::npos)
        return fail(ErrorCode::invalid, fmt::format("there is a NUL byte at {}", place_in(statements, end)));
    const profile::Interruption::Scope scope(inside_->interruption);
    inside_->steps = 0;
    const std::string all(statements);
    for (std::size_t at = 0; at < all.size();) {
        const Statement statement = TRY(inside_->prepare(all, at));
        if (statement) TRY(inside_->run(statement.get(), sink));
    }
    return true;
}

}  // namespace flamewire::views::sql
