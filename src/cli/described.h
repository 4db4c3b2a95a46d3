// The command line as data, for shell completions and the manual page.
#pragma once

#include <CLI/App.hpp>

#include <string>
#include <vector>

namespace flamewire::cli {

struct DescribedOption {
    std::vector<std::string> names;  // with dashes; empty: a positional
    std::string value;               // name of its value: "FILE"; empty: takes no value
    std::string text;                // description
    std::string standard;            // default value; empty: none
    std::vector<std::string> choices;
};
struct DescribedCommand {
    std::string name, summary;
    std::string positionals;  // "[FILE]", "COMMAND..."
    std::vector<DescribedOption> options;
};

// The program's commands, in order.
std::vector<DescribedCommand> describe(const CLI::App& program);

}  // namespace flamewire::cli
