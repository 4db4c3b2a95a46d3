// The subcommands of `flamewire`. Each adds its options to the command line and returns its action.
#pragma once

#include <CLI/App.hpp>

#include <functional>
#include <span>

#include "base/result.h"

namespace flamewire::cli {

// Returns the exit code, or an error of one sentence, which the caller prints.
using Action = std::function<Result<int>()>;

struct Command {
    const char* name;
    const char* summary;
    Action (*add)(CLI::App& command);
};

std::span<const Command> commands();

Action add_completion(CLI::App& command);
Action add_diff(CLI::App& command);
Action add_export(CLI::App& command);
Action add_import(CLI::App& command);
Action add_list(CLI::App& command);
Action add_manual(CLI::App& command);
Action add_probe(CLI::App& command);
Action add_record(CLI::App& command);
Action add_report(CLI::App& command);
Action add_serve(CLI::App& command);
Action add_sql(CLI::App& command);
Action add_stat(CLI::App& command);
Action add_top(CLI::App& command);
Action add_trace(CLI::App& command);

}  // namespace flamewire::cli
