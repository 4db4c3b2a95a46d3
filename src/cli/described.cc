#include "cli/described.h"

namespace flamewire::cli {
namespace {

// CLI11 appends checks to the type: "TEXT:{a,b}", "UINT:INT in [0 - 3]".
std::vector<std::string> choices_of(const std::string& type) {
    std::vector<std::string> choices;
    const std::size_t open = type.find('{'), close = type.find('}');
    if (open == std::string::npos || close == std::string::npos) return choices;
    for (std::size_t at = open + 1; at <= close;) {
        const std::size_t end = std::min(type.find(',', at), close);
        choices.push_back(type.substr(at, end - at));
        at = end + 1;
    }
    return choices;
}

std::string value_of(const CLI::Option& option) {
    if (option.get_items_expected_max() == 0) return {};
    std::string type = option.get_type_name();
    type.resize(std::min(type.find(':'), type.size()));
    if (type == "TEXT" || type.empty()) return "TEXT";
    return type == "UINT" || type == "INT" ? "N" : type == "FLOAT" ? "NUMBER" : type;
}

DescribedOption describe(const CLI::Option& option) {
    DescribedOption described;
    for (const std::string& name : option.get_snames()) described.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) described.names.push_back("--" + name);
    described.value = value_of(option);
    described.text = option.get_description();
    described.standard = option.get_default_str();
    described.choices = choices_of(option.get_type_name());
    return described;
}

}  // namespace

std::vector<DescribedCommand> describe(const CLI::App& program) {
    std::vector<DescribedCommand> commands;
    for (const CLI::App* app : program.get_subcommands([](const CLI::App*) { return true; })) {
        DescribedCommand command{app->get_name(), app->get_description(), {}, {}};
        for (const CLI::Option* option : app->get_options()) {
            DescribedOption described = describe(*option);
            if (described.names.empty()) {
                const bool several = option->get_items_expected_max() > 1;
                described.value = option->get_name();
                const std::string shown = described.value + (several ? "…" : "");
                command.positionals += " " + (option->get_required() ? shown : "[" + shown + "]");
            }
            command.options.push_back(std::move(described));
        }
        commands.push_back(std::move(command));
    }
    return commands;
}

}  // namespace flamewire::cli
