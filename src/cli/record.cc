#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "base/file.h"
#include "base/json_writer.h"
#include "cli/agent_process.h"
#include "cli/command.h"
#include "cli/open_profile.h"
#include "cli/profile_text.h"
#include "cli/progress.h"
#include "cli/running_files.h"
#include "cli/serve.h"
#include "cli/terminal.h"
#include "cli/view_options.h"
#include "profile/formats/json.h"
#include "server/session/label.h"
#include "server/session/session_name.h"
#include "server/session/side_files.h"
#include "views/quality_warnings.h"

namespace flamewire::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t default_rows = 10;

struct RecordOptions {
    AgentOptions agent;
    OpenOptions open;
    OutputOptions output;
    std::string file, name;
    std::vector<std::string> tags;
    bool force = false, serve = false, quiet = false;
    std::size_t rows = default_rows;
};

// The session's path: --output, or a new name among the server's sessions, where the server finds it.
Result<std::string> session_path(const RecordOptions& options) {
    if (!options.file.empty()) return fs::absolute(options.file).lexically_normal().string();
    const fs::path folder = fs::path(TRY(data_dir_of(options.open.data_dir))) / "sessions";
    if (auto made = make_private_folders(folder.string()); !made) {
        made.error().message += " (--data-dir names another)";
        return std::unexpected(std::move(made).error());
    }
    const std::string id = server::timestamped_name(options.agent.target());
    fs::path path = folder / (id + ".flw");
    std::error_code error;
    for (int attempt = 2; fs::exists(path, error); ++attempt) path = folder / fmt::format("{}_{}.flw", id, attempt);
    return path.string();
}

// Stores the values of --title and --tag beside the stream.
Result<bool> keep_label(const RecordOptions& options, const std::string& stream) {
    server::LabelChange change;
    if (!options.name.empty()) change.name = options.name;
    for (const std::string& text : options.tags) change.tags.emplace_back(TRY(server::parse_tag(text)));
    if (!change.name && change.tags.empty()) return true;
    return server::write_label(server::side_file(stream, server::label_name), TRY(server::changed({}, change)));
}

std::string summary(const server::Session& session, const std::vector<views::View>& views, const RecordOptions& options,
                    const OutputStyle& style) {
    const server::SessionInfo info = session.info();
    const views::ModuleReports reports = session.symbols().reports();
    return session.read([&](const profile::Store& store) {
        std::string text;
        const TableOptions table{.percent_limit = 0, .most_rows = options.rows};
        for (const views::View& view : views)
            text += event_head(store, view) +
                    notice_lines(views::quality_warnings(store, view, info.unwinding, info.notices, reports)) +
                    function_table(store, view, profile::functions(store, view.filter), table, style);
        return text;
    });
}

Result<std::string> json_of(const server::Session& session, const std::string& path, int exit_code) {
    JsonWriter json;
    json.object();
    json.member("file", path);
    json.member("exit_code", exit_code);
    json.key("profile");
    json.raw(TRY(session.read([](const profile::Store& store) { return profile::json(store, {}); })));
    json.end_object();
    return json.take() + "\n";
}

// Symbolizes with files that only processes still have open, or that the command had. Returns true if there were such
// files.
bool name_by_running_files(OpenProfile& open, std::optional<RunningFile> command) {
    std::vector<symbol::ModuleIdentity> modules;
    for (const auto& wanted : open.session->symbols().wanted_modules()) modules.push_back(wanted.identity);
    if (modules.empty()) return false;
    std::set<std::uint32_t> pids;
    open.session->read([&](const profile::Store& store) {
        for (const profile::Process& process : store.processes()) pids.insert(process.wire.pid);
    });
    const std::vector<RunningFile> files =
        running_files(modules, std::vector(pids.begin(), pids.end()), std::move(command));
    if (files.empty()) return false;
    symbol::Config config = open.symbolizer->config();
    for (const RunningFile& file : files) config.binaries.push_back(file.path);
    open.symbolizer->set_config(config);
    Progress progress;
    open.session->symbols().symbolize(*open.symbolizer, [&] { progress.show("Naming addresses"); });
    return true;
}

Result<int> record(const RecordOptions& options) {
    std::vector<std::string> arguments = TRY(options.agent.arguments());
    for (const std::string& text : options.tags) (void)TRY(server::parse_tag(text));
    const std::string path = TRY(session_path(options));
    arguments.insert(arguments.end(), {"--output", path});
    if (options.force) arguments.emplace_back("--force");
    options.agent.add_command(arguments);
    std::optional<RunningFile> command_file;
    if (!options.agent.command().empty()) command_file = file_of_command(options.agent.command().front());
    std::error_code error;
    const auto before = fs::last_write_time(path, error);
    const bool was_there = !error;
    AgentProcess agent = TRY(AgentProcess::start(
        arguments, options.output.json ? AgentProcess::Output::to_errors : AgentProcess::Output::ours));
    const int code = agent.wait();
    // The agent has already printed the reason.
    const auto after = fs::last_write_time(path, error);
    if (error || (was_there && after == before)) return code == 0 ? 1 : code;

    if (const auto kept = keep_label(options, path); !kept)
        print_error("flamewire record: name and tags are not kept: " + kept.error().message);
    OpenProfile open = TRY(open_profile(path, options.open));
    server::Session& session = *open.session;
    const bool from_processes = name_by_running_files(open, std::move(command_file));
    // Store the symbols: a session in the server's folder must stay readable wherever it is copied, and files of
    // processes are gone later.
    if (options.file.empty() || from_processes) session.symbols().write_cache();
    if (options.output.json) {
        const std::string json = TRY(json_of(session, path, code));
        TRY(print_paged(json, options.output));
    } else if (!options.quiet) {
        const std::vector<views::View> views = TRY(views_of(session, {}));
        // On standard error, separate from the command's own output, as perf does.
        fmt::print(stderr, "\n{}\nsession: {}\n", summary(session, views, options, style_of_errors(options.output)),
                   path);
        if (views.empty())
            fmt::print(stderr, "no samples: {}\n",
                       session.info().lost != 0 ? "all were lost; increase --ring-pages"
                                                : "the target hardly ran, or try a higher -F");
    }
    if (options.serve) return serve_session(path, data_dir_of(options.open.data_dir).value_or(std::string{}));
    return code;
}

}  // namespace

Action add_record(CLI::App& command) {
    auto options = std::make_shared<RecordOptions>();
    options->agent.add(command, AgentOptions::Use::sample);
    command
        .add_option("-o,--output", options->file, "session file to write (default: a new session of the data folder)")
        ->type_name("FILE");
    command.add_option("--title", options->name, "name of the session")->type_name("TEXT");
    command.add_option("--tag", options->tags, "tag to find it by (repeatable)")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false);
    command.add_flag("-f,--force", options->force, "replace the file");
    command.add_flag("--open", options->serve, "serve the session in the browser afterwards");
    command.add_option("-n,--limit", options->rows, "functions to show")->type_name("N")->capture_default_str();
    command.add_flag("-q,--quiet", options->quiet, "show no table");
    add_output_options(command, options->output);
    add_open_options(command, options->open);
    return [options] { return record(*options); };
}

}  // namespace flamewire::cli
