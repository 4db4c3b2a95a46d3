#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>

#include "base/file.h"
#include "base/utf8.h"

namespace flamewire::cli {
namespace {

std::string_view variable(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::string_view{} : std::string_view(value);
}

TerminalSize size_of(int fd) {
    TerminalSize size;
    winsize window{};
    if (::ioctl(fd, TIOCGWINSZ, &window) == 0 && window.ws_col > 0 && window.ws_row > 0) {
        size.columns = window.ws_col;
        size.rows = window.ws_row;
    }
    return size;
}

// The same variables as in setlocale(), without loading locale data.
bool locale_is_utf8() {
    for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"})
        if (const std::string_view value = variable(name); !value.empty()) {
            std::string lower(value);
            std::ranges::transform(lower, lower.begin(),
                                   [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; });
            return lower.find("utf-8") != std::string::npos || lower.find("utf8") != std::string::npos;
        }
    return false;
}

OutputStyle style_of(int fd, const OutputOptions& options) {
    const bool terminal = ::isatty(fd) == 1;
    OutputStyle style;
    style.colors = options.color == "always" ||
                   (options.color == "auto" && terminal && variable("NO_COLOR").empty() && variable("TERM") != "dumb");
    style.unicode = locale_is_utf8();
    style.columns = terminal ? size_of(fd).columns : 0;
    return style;
}

// Keep colors, exit if everything fits on one screen, and leave the screen as it was.
constexpr const char* default_pager = "less -FRX";

}  // namespace

void add_output_options(CLI::App& command, OutputOptions& options) {
    command.add_option("--color", options.color, "colors: auto, always or never (auto)")
        ->type_name("WHEN")
        ->check(CLI::IsMember({"auto", "always", "never"}));
    command.add_flag("--no-pager", options.no_pager, "print all at once");
    command.add_flag("--json", options.json, "print JSON for programs");
}

std::string OutputStyle::styled(std::string_view text, fmt::text_style style) const {
    return colors ? fmt::format(style, "{}", text) : std::string(text);
}

bool output_is_terminal() { return ::isatty(STDOUT_FILENO) == 1; }

TerminalSize terminal_size() { return size_of(STDOUT_FILENO); }

OutputStyle style_of_output(const OutputOptions& options) { return style_of(STDOUT_FILENO, options); }
OutputStyle style_of_errors(const OutputOptions& options) { return style_of(STDERR_FILENO, options); }

void print_error(std::string_view text) { fmt::print(stderr, "{}\n", printable(text)); }

Result<int> print_paged(std::string_view text, const OutputOptions& options) {
    const auto lines = std::ranges::count(text, '\n');
    std::FILE* pager = nullptr;
    if (!options.no_pager && !options.json && output_is_terminal() && lines >= terminal_size().rows) {
        const std::string_view chosen = variable("PAGER");
        pager = ::popen(chosen.empty() ? default_pager : std::string(chosen).c_str(), "w");
    }
    if (pager != nullptr) {
        (void)std::fwrite(text.data(), 1, text.size(), pager);  // the user can quit less before it has read everything
        const int status = ::pclose(pager);
        constexpr int not_found = 127;
        if (!(WIFEXITED(status) && WEXITSTATUS(status) == not_found)) return 0;
    }
    const auto written = write_all(STDOUT_FILENO, as_bytes_view(text));
    if (!written && written.error().errno_value != EPIPE) return std::unexpected(written.error());
    return 0;
}

}  // namespace flamewire::cli
