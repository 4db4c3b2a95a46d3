#include "views/sql/save.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "base/fd.h"
#include "views/sql/tables.h"
#include "views/sql/virtual_table.h"

namespace flamewire::views::sql {
namespace {

struct Close {
    void operator()(sqlite3* connection) const { (void)sqlite3_close_v2(connection); }
};
using Connection = std::unique_ptr<sqlite3, Close>;

// A copy that fails is removed, so it needs no journal. Indexes are sorted in temporary files.
constexpr auto settings = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF";
constexpr auto indexes =
    "CREATE INDEX samples_by_stack ON samples (stack_id); CREATE INDEX samples_by_time ON samples (time_ns);"
    "CREATE INDEX frames_by_stack ON frames (stack_id); CREATE INDEX stacks_by_id ON stacks (stack_id);"
    "CREATE INDEX threads_by_id ON threads (thread_id); CREATE INDEX processes_by_id ON processes (process_id);"
    "CREATE INDEX modules_by_id ON modules (module_id)";

int asked(void* interruption) { return static_cast<const profile::Interruption*>(interruption)->asked() ? 1 : 0; }

Result<bool> execute(sqlite3* connection, const std::string& statements, const std::string& path) {
    const int code = sqlite3_exec(connection, statements.c_str(), nullptr, nullptr, nullptr);
    if (code == SQLITE_OK) return true;
    if (code == SQLITE_INTERRUPT) return fail(ErrorCode::closed, "interrupted");
    return fail(ErrorCode::io, fmt::format("cannot write {}: {}", path, sqlite3_errmsg(connection)));
}

Result<bool> fill(const Connection& connection, Context& context, const std::string& path) {
    TRY(execute(connection.get(), settings, path));
    for (const Table& table : tables())
        if (const int code = add_virtual_table(connection.get(), table, context); code != SQLITE_OK)
            return fail(ErrorCode::io, fmt::format("cannot start SQLite: {}", sqlite3_errstr(code)));
    TRY(execute(connection.get(), "BEGIN", path));
    // The declared types are kept. From then on, the name means the new table.
    for (const Table& table : tables()) {
        TRY(execute(connection.get(),
                    "CREATE TABLE main.copy" + declaration(table).substr(declaration(table).find(" (")), path));
        TRY(execute(
            connection.get(),
            fmt::format("INSERT INTO main.copy SELECT * FROM {0}; ALTER TABLE main.copy RENAME TO {0}", table.name),
            path));
    }
    TRY(execute(connection.get(), indexes, path));
    return execute(connection.get(), "COMMIT", path);
}

}  // namespace

Result<bool> save(Profile profile, const profile::Interruption& interruption, const std::string& path) {
    const UniqueFd made(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!made && errno == EEXIST)
        return fail(ErrorCode::invalid, fmt::format("{} exists: give another file, or delete it", path));
    if (!made) return fail_errno("cannot write " + path, errno);
    const profile::Interruption::Scope scope(interruption);
    Context context(std::move(profile));
    Result<bool> done = [&]() -> Result<bool> {
        sqlite3* opened = nullptr;
        // With a folder in front, no name is special for SQLite.
        const int code = sqlite3_open_v2((path.starts_with('/') ? path : "./" + path).c_str(), &opened,
                                         SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
        const Connection connection(opened);
        if (code != SQLITE_OK)
            return fail(ErrorCode::io, fmt::format("cannot write {}: {}", path, sqlite3_errstr(code)));
        constexpr int steps_between_checks = 10'000;
        sqlite3_progress_handler(opened, steps_between_checks, asked,
                                 const_cast<profile::Interruption*>(&interruption));
        return fill(connection, context, path);
    }();
    if (!done) (void)::unlink(path.c_str());
    return done;
}

}  // namespace flamewire::views::sql
