#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <memory>

#include "cli/command.h"
#include "cli/described.h"

namespace flamewire::cli {
namespace {

std::string command_names(const std::vector<DescribedCommand>& commands) {
    std::vector<std::string> names;
    names.reserve(commands.size());
    for (const DescribedCommand& command : commands) names.push_back(command.name);
    return fmt::format("{}", fmt::join(names, " "));
}

std::string bash(const std::vector<DescribedCommand>& commands) {
    std::string out = fmt::format(
        "# bash completion of flamewire: eval \"$(flamewire completion bash)\"\n"
        "_flamewire() {{\n"
        "  local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}\n"
        "  if [ \"$COMP_CWORD\" = 1 ]; then\n"
        "    COMPREPLY=($(compgen -W '{} --help --version' -- \"$current\"))\n"
        "    return\n"
        "  fi\n"
        "  local options=\n"
        "  case \"${{COMP_WORDS[1]}}\" in\n",
        command_names(commands));
    for (const DescribedCommand& command : commands) {
        std::string options;
        std::string values;
        for (const DescribedOption& option : command.options) {
            for (const std::string& name : option.names) options += (options.empty() ? "" : " ") + name;
            if (!option.choices.empty() && !option.names.empty())
                values += fmt::format("      {}) COMPREPLY=($(compgen -W '{}' -- \"$current\")); return ;;\n",
                                      fmt::join(option.names, "|"), fmt::join(option.choices, " "));
        }
        out += fmt::format("    {})\n      options='{}'\n", command.name, options);
        if (!values.empty()) out += "      case \"$before\" in\n" + values + "      esac\n";
        out += "      ;;\n";
    }
    out +=
        "  esac\n"
        "  case \"$current\" in\n"
        "    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$current\")) ;;\n"
        "    *) COMPREPLY=($(compgen -f -- \"$current\")) ;;\n"
        "  esac\n"
        "}\n"
        "complete -o filenames -F _flamewire flamewire\n";
    return out;
}

// Escapes text for single quotes, and escapes the characters that separate parts of zsh's specifications.
std::string zsh_quoted(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '\'')
            out += "'\\''";
        else if (c == '[' || c == ']' || c == ':')
            (out += '\\') += c;
        else
            out += c;
    }
    return out;
}

std::string zsh(const std::vector<DescribedCommand>& commands) {
    std::string out =
        "#compdef flamewire\n"
        "# zsh completion of flamewire: a file _flamewire in a folder of $fpath\n"
        "local -a commands\n"
        "commands=(\n";
    for (const DescribedCommand& command : commands)
        out += fmt::format("  '{}:{}'\n", command.name, zsh_quoted(command.summary));
    out +=
        ")\n"
        "if (( CURRENT == 2 )); then\n"
        "  _describe command commands\n"
        "  return\n"
        "fi\n"
        "case $words[2] in\n";
    for (const DescribedCommand& command : commands) {
        out += fmt::format("  {})\n    shift words; (( CURRENT-- ))\n    _arguments -S", command.name);
        for (const DescribedOption& option : command.options)
            for (const std::string& name : option.names) {
                std::string argument;
                if (!option.choices.empty())
                    argument = fmt::format(":{}:({})", zsh_quoted(option.value), fmt::join(option.choices, " "));
                else if (!option.value.empty())
                    argument = fmt::format(":{}:_files", zsh_quoted(option.value));
                out += fmt::format(" \\\n      '*{}[{}]{}'", name, zsh_quoted(option.text), argument);
            }
        out += " \\\n      '*:file:_files'\n    ;;\n";
    }
    out += "esac\n";
    return out;
}

std::string fish_quoted(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '\'' || c == '\\') out += '\\';
        out += c;
    }
    return out;
}

std::string fish(const std::vector<DescribedCommand>& commands) {
    std::string out = "# fish completion of flamewire: flamewire completion fish | source\n";
    for (const DescribedCommand& command : commands)
        out += fmt::format("complete -c flamewire -n __fish_use_subcommand -f -a {} -d '{}'\n", command.name,
                           fish_quoted(command.summary));
    for (const DescribedCommand& command : commands)
        for (const DescribedOption& option : command.options) {
            if (option.names.empty()) continue;
            out += fmt::format("complete -c flamewire -n '__fish_seen_subcommand_from {}'", command.name);
            for (const std::string& name : option.names)
                out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
            if (!option.choices.empty())
                out += fmt::format(" -x -a '{}'", fmt::join(option.choices, " "));
            else if (!option.value.empty())
                out += " -r";
            out += fmt::format(" -d '{}'\n", fish_quoted(option.text));
        }
    return out;
}

}  // namespace

Action add_completion(CLI::App& command) {
    auto shell = std::make_shared<std::string>();
    command.add_option("SHELL", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
    return [shell, &command]() -> Result<int> {
        const std::vector<DescribedCommand> commands = describe(*command.get_parent());
        fmt::print("{}", *shell == "bash" ? bash(commands) : *shell == "zsh" ? zsh(commands) : fish(commands));
        return 0;
    };
}

}  // namespace flamewire::cli
