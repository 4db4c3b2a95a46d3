// Runs SQL over a profile. Statements read the profile's tables and can create their own, which live in memory as long
// as the database. They cannot open files, load code or change settings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "profile/store/interruption.h"
#include "views/sql/context.h"

struct sqlite3;
struct sqlite3_stmt;

namespace flamewire::views::sql {

// SQLite's memory for sorting, grouping and tables of the user, of all databases of the process.
inline constexpr std::int64_t max_memory_bytes = std::int64_t{1} << 30;
inline constexpr int max_statement_bytes = 1 << 20;
inline constexpr int max_value_bytes = 64 << 20;

struct Blob {
    std::string_view bytes;
};
// One value of a result. Text and bytes are valid until the next row. Text may be any bytes.
using Cell = std::variant<std::monostate, std::int64_t, double, std::string_view, Blob>;

// Receives the results of the statements that have any, in order.
struct Sink {
    std::function<void(std::span<const std::string>)> begin;  // the names of the columns
    std::function<bool(std::span<const Cell>)> row;           // false: no more are wanted
    std::function<void()> end;
};

class Database {
public:
    // `interruption` stops a running statement. max_steps: of SQLite's virtual machine for one run(); 0: no limit.
    static Result<Database> open(Profile profile, const profile::Interruption& interruption,
                                 std::uint64_t max_steps = 0);
    Database(Database&&) noexcept;
    Database& operator=(Database&&) = delete;
    ~Database();

    // Runs all statements of the text. invalid: a mistake in the text, with its position; too_large: a limit was
    // reached; closed: interrupted, or the sink wants no more rows. Results so far have been passed to the sink.
    Result<bool> run(std::string_view statements, const Sink& sink);

private:
    struct Inside;
    explicit Database(std::unique_ptr<Inside> inside);
    std::unique_ptr<Inside> inside_;
};

}  // namespace flamewire::views::sql
