// The command line as data, for what is made of it: shell completions and the manual page.
#pragma once

#include <CLI/App.hpp>

#include <string>
#include <vector>

namespace flamewire::cli {

struct DescribedOption {
    std::vector<std::string> names;  // with their dashes; empty: a positional
    std::string value;               // what it takes: "FILE"; empty: nothing
    std::string text;                // what it does
    std::string standard;            // its value when it is not given; empty: none
    std::vector<std::string> choices;
};
struct DescribedCommand {
    std::string name, summary;
    std::string positionals;  // "[FILE]", "COMMAND..."
    std::vector<DescribedOption> options;
};

// The program's commands in their order.
std::vector<DescribedCommand> describe(const CLI::App& program);

}  // namespace flamewire::cli
