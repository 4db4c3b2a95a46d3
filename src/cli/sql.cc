#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <system_error>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "cli/command.h"
#include "cli/open_profile.h"
#include "cli/sql_output.h"
#include "cli/terminal.h"
#include "profile/query/diff.h"
#include "views/sql/database.h"
#include "views/sql/save.h"
#include "views/sql/tables.h"

namespace flamewire::cli {
namespace {

namespace sql = views::sql;

struct SqlOptions {
    std::string file, statements, database;
    bool csv = false;
    OpenOptions open;
    OutputOptions output;
};

// What Ctrl-C asks to stop.
profile::Interruption& stop_request() {
    static profile::Interruption interruption;
    return interruption;
}

// Ctrl-C stops the running statement. A second one ends the program.
class StopOnInterrupt {
public:
    StopOnInterrupt() {
        (void)stop_request();  // not created in the signal handler
        struct sigaction action{};
        action.sa_handler = [](int) { stop_request().ask(); };
        action.sa_flags = static_cast<int>(SA_RESETHAND);
        (void)sigaction(SIGINT, &action, &before_);
    }
    ~StopOnInterrupt() { (void)sigaction(SIGINT, &before_, nullptr); }
    StopOnInterrupt(const StopOnInterrupt&) = delete;
    StopOnInterrupt& operator=(const StopOnInterrupt&) = delete;

private:
    struct sigaction before_{};
};

sql::Value text(std::string_view value) { return value.empty() ? sql::Value() : sql::Value(std::string(value)); }

std::vector<std::pair<std::string, sql::Value>> facts_of(const server::SessionInfo& info) {
    std::vector<std::pair<std::string, sql::Value>> facts{
        {"session", text(info.id)},
        {"title", text(title_of(info))},
        {"target", text(info.target)},
        {"agent", text(info.agent)},
        {"host", text(info.host)},
        {"arch", text(info.arch)},
        {"kernel", text(info.kernel_release)},
        {"agent_version", text(info.agent_version)},
        {"started_ns", info.started_ns},
        {"start_ns", sql::integer(info.start_ns)},
        {"duration_ms", info.duration_ms},
        {"samples", sql::integer(info.samples)},
        {"lost", sql::integer(info.lost)},
        {"unresolved_percent", info.unresolved_percent},
        {"frequency_hz", sql::null_if_0(info.frequency_hz)},
        {"unwind", text(info.unwinding.mode)},
        {"end_reason", text(info.end_reason)},
        {"exit_code", info.exit_code ? sql::Value(std::int64_t{*info.exit_code}) : sql::Value()},
    };
    for (const auto& [key, value] : info.label.tags) facts.emplace_back("tag:" + key, value);
    return facts;
}

sql::Profile profile_of(const server::Session& session, const profile::Store& store) {
    const server::SessionInfo info = session.info();
    // Files of other tools have no clock time, so the start of such a session is the time of the import.
    const bool has_clock = profile::has_times(store) && info.end_reason != "imported";
    return {.store = store,
            .start_ns = info.start_ns,
            .started_ns = has_clock ? info.started_ns : 0,
            .notices = info.notices,
            .unwinding = info.unwinding,
            .reports = session.symbols().reports(),
            .loss_reason = server::loss_reason_name,
            .info = facts_of(info)};
}

// The tables and their columns, for people.
void print_schema(PagedText& out, const OutputStyle& style) {
    for (const sql::Table& table : sql::tables()) {
        out.put(fmt::format("{}  {}\n", style.styled(table.name, fmt::emphasis::bold), table.text));
        for (const sql::Column& column : table.columns)
            out.put(fmt::format("  {:<14}  {:<7}  {:<13}  {}\n", column.name, column.type, column.unit, column.text));
        out.put("\n");
    }
}

// The same as a result.
void write_schema(const sql::Sink& sink) {
    const std::vector<std::string> names{"table", "column", "type", "unit", "description"};
    sink.begin(names);
    for (const sql::Table& table : sql::tables())
        for (const sql::Column& column : table.columns)
            sink.row(std::array<sql::Cell, 5>{table.name, std::string_view(column.name), std::string_view(column.type),
                                              std::string_view(column.unit), std::string_view(column.text)});
    sink.end();
}

Result<std::string> statements_of(const SqlOptions& options) {
    if (options.statements != "-") return options.statements;
    std::string all;
    std::array<char, 1 << 16> block{};
    while (all.size() <= static_cast<std::size_t>(sql::max_statement_bytes)) {
        const ssize_t got = ::read(STDIN_FILENO, block.data(), block.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail_errno("cannot read standard input", errno);
        if (got == 0) break;
        all.append(block.data(), static_cast<std::size_t>(got));
    }
    return all;
}

Result<bool> run_statements(const SqlOptions& options, const sql::Sink& sink) {
    const std::string statements = TRY(statements_of(options));
    const OpenProfile open = TRY(open_profile(options.file, options.open));
    const server::Session& session = *open.session;
    const StopOnInterrupt stop;
    return session.read([&](const profile::Store& store) -> Result<bool> {
        sql::Database database = TRY(sql::Database::open(profile_of(session, store), stop_request()));
        return database.run(statements, sink);
    });
}

Result<int> save(const SqlOptions& options) {
    if (!options.statements.empty())
        return fail(ErrorCode::invalid, "-o writes all tables and takes no statements: run them on the written file");
    const OpenProfile open = TRY(open_profile(options.file, options.open));
    const server::Session& session = *open.session;
    const StopOnInterrupt stop;
    TRY(session.read([&](const profile::Store& store) {
        return sql::save(profile_of(session, store), stop_request(), options.database);
    }));
    return 0;
}

Result<int> run(SqlOptions options) {
    // A single argument with blanks that is not a file is a statement for the newest session.
    std::error_code none;
    if (options.statements.empty() && options.file.find(' ') != std::string::npos &&
        !std::filesystem::exists(options.file, none))
        std::swap(options.file, options.statements);
    if (!options.database.empty()) return save(options);
    if (options.file == "-" && options.statements == "-")
        return fail(ErrorCode::invalid, "standard input cannot be both FILE and SQL");
    PagedText text(options.output);
    const SqlFormat format = options.output.json ? SqlFormat::json : options.csv ? SqlFormat::csv : SqlFormat::table;
    const OutputStyle style = style_of_output(options.output);
    const SqlOutput output = sql_output(format, text, style);
    if (options.statements.empty()) {
        if (!options.file.empty()) {
            const std::string data_dir = data_dir_of(options.open.data_dir).value_or(std::string{});
            TRY(find_session(options.file, data_dir));
        }
        if (format == SqlFormat::table) {
            print_schema(text, style);
        } else {
            write_schema(output.sink);
            output.finish();
        }
        return text.finish();
    }
    const Result<bool> done = run_statements(options, output.sink);
    if (done) output.finish();
    const Result<int> written = text.finish();
    if (!written || done || text.closed()) return written;
    return std::unexpected(done.error());
}

}  // namespace

Action add_sql(CLI::App& command) {
    auto options = std::make_shared<SqlOptions>();
    command.add_option("FILE", options->file, "session or profile (default: the newest session)");
    command.add_option("SQL", options->statements,
                       "statements to run, with ; between them; - reads them from standard input (default: list the "
                       "tables and their columns)");
    command.add_option("-o,--output", options->database, "write all tables into this new SQLite database instead")
        ->type_name("OUT");
    command.add_flag("--csv", options->csv, "print comma-separated values");
    add_output_options(command, options->output);
    command.get_option("--json")->excludes("--csv");
    add_open_options(command, options->open);
    return [options] { return run(*options); };
}

}  // namespace flamewire::cli
