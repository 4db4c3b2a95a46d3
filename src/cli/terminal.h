// Text output to a terminal (colors, pager, width), a pipe or a file.
#pragma once

#include <CLI/App.hpp>
#include <fmt/color.h>

#include <string>
#include <string_view>

#include "base/result.h"

namespace flamewire::cli {

// Options of every command that prints tables.
struct OutputOptions {
    std::string color = "auto";
    bool no_pager = false;
    bool json = false;
};
void add_output_options(CLI::App& command, OutputOptions& options);

// The style that the output supports.
struct OutputStyle {
    bool colors = false;
    bool unicode = true;   // draw trees with Unicode lines; else ASCII
    unsigned columns = 0;  // 0: unlimited
    // `text` in the style if colors are on, else unchanged.
    [[nodiscard]] std::string styled(std::string_view text, fmt::text_style style) const;
};

struct TerminalSize {
    unsigned columns = 80, rows = 24;
};
// Refer to standard output. The default size applies if it is not a terminal.
bool output_is_terminal();
TerminalSize terminal_size();
// Depends on the options, NO_COLOR, TERM and whether standard output is a terminal.
OutputStyle style_of_output(const OutputOptions& options);
OutputStyle style_of_errors(const OutputOptions& options);  // the same for standard error

// Prints one line to standard error. Names of files and texts of other programs in it cannot control the terminal.
void print_error(std::string_view text);

// Prints to standard output, through $PAGER (or less) if it is a terminal with fewer rows. Write errors are returned
// (for example a full disk). A reader that closes its end early is not an error.
Result<int> print_paged(std::string_view text, const OutputOptions& options);

}  // namespace flamewire::cli
