#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "cli/agent_process.h"
#include "cli/command.h"
#include "cli/open_profile.h"
#include "cli/terminal.h"
#include "server/saved_answers.h"
#include "views/counters.h"

namespace flamewire::cli {
namespace {

struct StatOptions {
    AgentOptions agent;
    OpenOptions open;
    OutputOptions output;
    std::string input;
};

Result<int> print_counters(const StatOptions& options, const std::string& file) {
    const OpenProfile open = TRY(open_profile(file, options.open));
    const server::Session& session = *open.session;
    if (options.output.json) return print_paged(server::counters_json(session) + "\n", options.output);
    const server::SessionInfo info = session.info();
    const auto groups = session.read(
        [](const profile::Store& store) { return views::counter_groups(store, {}, views::Breakdown::total, 0); });
    if (groups.empty()) return fail(ErrorCode::not_found, fmt::format("nothing was counted in {}", info.id));
    const std::string title = fmt::format("'{}'", title_of(info));
    return print_paged(counters::perf_stat_table(groups.front().lines, title, groups.front().elapsed_ns),
                       options.output);
}

Result<int> stat(const StatOptions& options) {
    if (!options.input.empty()) return print_counters(options, options.input);
    std::vector<std::string> arguments = TRY(options.agent.arguments());
    if (options.agent.sched() && options.output.json)
        return fail(ErrorCode::invalid,
                    "--stat sched prints a table only: for JSON record with --events off-cpu, and ask a server's "
                    "/api/scheduling");
    if (!options.agent.sched()) arguments.insert(arguments.end(), {"--events", "none"});
    arguments.emplace_back("--output");
    if (!options.output.json) {
        arguments.emplace_back("-");  // the agent prints the table itself
        options.agent.add_command(arguments);
        AgentProcess agent = TRY(AgentProcess::start(arguments));
        return agent.wait();
    }
    const Scratch scratch = TRY(Scratch::create());
    arguments.push_back(scratch.session_file());
    options.agent.add_command(arguments);
    AgentProcess agent = TRY(AgentProcess::start(arguments, AgentProcess::Output::to_errors));
    const int code = agent.wait();
    if (std::error_code error; !std::filesystem::exists(scratch.session_file(), error)) return code == 0 ? 1 : code;
    TRY(print_counters(options, scratch.session_file()));
    return code;
}

}  // namespace

Action add_stat(CLI::App& command) {
    auto options = std::make_shared<StatOptions>();
    options->agent.add(command, AgentOptions::Use::count);
    command.add_option("-i,--input", options->input, "what was counted in this session or profile")->type_name("FILE");
    add_output_options(command, options->output);
    add_open_options(command, options->open);
    return [options] { return stat(*options); };
}

}  // namespace flamewire::cli
