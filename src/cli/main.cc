#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <map>

#include "cli/command.h"
#include "cli/terminal.h"

namespace {

using flamewire::cli::Action;
using flamewire::cli::Command;
using flamewire::cli::print_error;

int run(int argc, char** argv) {
    CLI::App app("flamewire: records profiles on this machine, and reads, compares, converts and serves profiles.",
                 "flamewire");
    app.set_version_flag("--version", "flamewire " FLAMEWIRE_VERSION, "print the version");
    app.set_help_all_flag("--help-all", "the options of all commands");
    app.require_subcommand(0, 1);
    app.footer(
        "FILE is a session's file, folder or id, an archive, or a file of another tool (perf.data, pprof, …); -\n"
        "reads standard input. Without it the newest session is meant. `flamewire COMMAND --help` has the details.");
    std::map<const CLI::App*, Action> actions;
    for (const Command& command : flamewire::cli::commands()) {
        CLI::App* added = app.add_subcommand(command.name, command.summary);
        actions[added] = command.add(*added);
    }
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& wanted) {  // --help or --version
        return app.exit(wanted);
    } catch (const CLI::ParseError& error) {
        const auto chosen = app.get_subcommands();
        const std::string of = chosen.empty() ? "" : " " + chosen.front()->get_name();
        print_error(fmt::format("flamewire{}: {} (see flamewire{} --help)", of, error.what(), of));
        return 2;
    }
    if (app.get_subcommands().empty()) {
        fmt::print("{}", app.help());
        return 0;
    }
    const CLI::App* chosen = app.get_subcommands().front();
    const auto done = actions.at(chosen)();
    if (done) return *done;
    print_error(fmt::format("flamewire {}: {}", chosen->get_name(), done.error().message));
    return 1;
}

}  // namespace

int main(int argc, char** argv) {
    // With SIGPIPE ignored, writing to a closed pager or pipe returns an error.
    std::signal(SIGPIPE, SIG_IGN);
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        print_error(fmt::format("flamewire: {}", error.what()));
        return 1;
    }
}
