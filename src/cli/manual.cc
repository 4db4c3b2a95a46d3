#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdio>

#include "cli/command.h"
#include "cli/described.h"

namespace flamewire::cli {
namespace {

// Escapes text for a manual page: backslashes, dashes that must stay dashes, and lines that would be requests.
std::string roff(std::string_view text) {
    std::string out;
    constexpr std::string_view ellipsis = "…";
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text.substr(at).starts_with(ellipsis)) {
            out += "...";
            at += ellipsis.size() - 1;
            continue;
        }
        const char c = text[at];
        if (c == '\\')
            out += "\\e";
        else if (c == '-')
            out += "\\-";
        else
            out += c;
    }
    if (out.starts_with('.') || out.starts_with('\'')) out.insert(0, "\\&");
    return out;
}

std::string names_of(const DescribedOption& option) {
    std::string names;
    for (const std::string& name : option.names)
        names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", roff(name));
    if (!option.value.empty()) names += fmt::format("{}\\fI{}\\fR", names.empty() ? "" : " ", roff(option.value));
    return names;
}

std::string page(const CLI::App& program) {
    std::string out = fmt::format(
        ".TH FLAMEWIRE 1 \"\" \"flamewire {}\" \"User Commands\"\n"
        ".SH NAME\nflamewire \\- record, read, compare, convert and serve profiles\n"
        ".SH SYNOPSIS\n",
        FLAMEWIRE_VERSION);
    const std::vector<DescribedCommand> commands = describe(program);
    for (const DescribedCommand& command : commands)
        out += fmt::format(".B flamewire {}\n[\\fIOPTIONS\\fR]{}\n.br\n", command.name, roff(command.positionals));
    out += fmt::format(".SH DESCRIPTION\n{}\n.PP\n{}\n.SH COMMANDS\n", roff(program.get_description()),
                       roff(program.get_footer()));
    for (const DescribedCommand& command : commands) {
        out += fmt::format(".SS flamewire {}{}\n{}.\n", command.name, roff(command.positionals), roff(command.summary));
        for (const DescribedOption& option : command.options) {
            out += fmt::format(".TP\n{}\n{}", names_of(option), roff(option.text));
            if (!option.standard.empty() && option.standard != "\"\"" && option.standard != "[]")
                out += fmt::format(" (default: {})", roff(option.standard));
            out += '\n';
        }
    }
    out +=
        ".SH ENVIRONMENT\n"
        ".TP\n\\fBFLAMEWIRE_AGENT\\fR\nthe agent to start, when it is not beside this program or in PATH\n"
        ".TP\n\\fBPAGER\\fR\nwhat shows long tables in a terminal (less \\-FRX)\n"
        ".TP\n\\fBNO_COLOR\\fR\nno colors\n"
        ".TP\n\\fBTMPDIR\\fR\nwhere temporary files go (/tmp)\n"
        ".TP\n\\fBXDG_DATA_HOME\\fR\nbelow it is the data folder\n"
        ".SH EXIT STATUS\n"
        "0, or 1 when it could not be done, or 2 for a wrong command line. \\fBrecord\\fR and \\fBstat\\fR of a "
        "command: that\n"
        "of the command, or 128 and the number of the signal that ended it.\n"
        ".SH SEE ALSO\n\\fBflamewire\\-agent\\fR(1), \\fBflamewire\\-server\\fR(1)\n";
    return out;
}

}  // namespace

Action add_manual(CLI::App& command) {
    return [&command]() -> Result<int> {
        fmt::print("{}", page(*command.get_parent()));
        return 0;
    };
}

}  // namespace flamewire::cli
