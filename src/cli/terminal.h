// Where text goes: a person's terminal (colours, a pager, its width), a pipe or a file.
#pragma once

#include <CLI/App.hpp>
#include <fmt/color.h>

#include <string>
#include <string_view>

#include "base/result.h"

namespace flamewire::cli {

// What every command that prints tables takes.
struct OutputOptions {
    std::string color = "auto";
    bool no_pager = false;
    bool json = false;
};
void add_output_options(CLI::App& command, OutputOptions& options);

// How text may look.
struct Look {
    bool colors = false;
    bool unicode = true;   // lines of trees; else ASCII
    unsigned columns = 0;  // 0: as wide as it gets
    // `text` in a colour, or as it is.
    [[nodiscard]] std::string styled(std::string_view text, fmt::text_style style) const;
};

struct TerminalSize {
    unsigned columns = 80, rows = 24;
};
// Of standard output, when that is a terminal.
bool output_is_terminal();
TerminalSize terminal_size();
// By the options, NO_COLOR, TERM and what standard output is.
Look look_of_output(const OutputOptions& options);
Look look_of_errors(const OutputOptions& options);  // the same for standard error

// Prints to standard output, through $PAGER (or less) when it is a terminal with fewer rows. An error is a full disk;
// a reader that has seen enough is none.
Result<int> print_paged(std::string_view text, const OutputOptions& options);

}  // namespace flamewire::cli
