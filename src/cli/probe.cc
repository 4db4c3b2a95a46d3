#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <tuple>
#include <vector>

#include "base/file.h"
#include "base/json_writer.h"
#include "base/utf8.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "elf/function_name.h"
#include "elf/function_symbols.h"
#include "elf/static_probes.h"
#include "symbol/demangle.h"

namespace flamewire::cli {
namespace {

// The largest programs have a million functions.
constexpr std::size_t max_functions = 4'000'000;

struct ProbeOptions {
    std::string action, file, pattern;
    OutputOptions output;
};

// What can be probed in a file. Offsets are those of the file.
struct ListedFunction {
    std::string name;  // demangled
    std::string symbol;
    std::uint64_t offset = 0, size = 0;
    bool ifunc = false;
};
struct ListedProbe {
    elf::StaticProbe probe;
    std::uint64_t offset = 0;
};
struct Listed {
    std::string path;  // absolute, without symbolic links
    std::vector<ListedProbe> probes;
    std::vector<ListedFunction> functions;
};

std::string function_event(const ListedFunction& function, const Listed& listed) {
    return fmt::format("uprobe:{}@\"{}\"", function.symbol, listed.path);
}
std::string probe_event(const elf::StaticProbe& probe, const Listed& listed) {
    return fmt::format("usdt:{}:{}@\"{}\"", probe.provider, probe.name, listed.path);
}

// Instances of templates have their result first: "void std::sort<int*>(int*, int*)".
std::string_view without_result(std::string_view name) {
    std::size_t start = 0;
    int depth = 0;
    for (std::size_t at = 0; at < name.size(); ++at) {
        const std::string_view rest = name.substr(at);
        if (depth == 0 && rest.starts_with("operator")) break;
        if (depth == 0 && rest.starts_with('(') && !rest.starts_with("(anonymous namespace)")) break;
        if (rest[0] == '<' || rest[0] == '(') ++depth;
        if (rest[0] == '>' || rest[0] == ')') --depth;
        if (rest[0] == ' ' && depth == 0) start = at + 1;
    }
    return name.substr(start);
}

// A pattern with `*` is for the whole text, and others are for its start.
bool matches(std::string_view pattern, std::string_view text) {
    if (pattern.find('*') != std::string_view::npos) return elf::matches_function_name(pattern, text);
    return text.starts_with(pattern);
}
bool matches_function(std::string_view pattern, std::string_view symbol) {
    if (pattern.empty()) return true;
    const std::string name = symbol::demangle(symbol);
    return matches(pattern, name) || matches(pattern, without_result(name)) || pattern == symbol;
}
bool matches_probe(std::string_view pattern, const elf::StaticProbe& probe) {
    const std::string name = fmt::format("usdt:{}:{}", probe.provider, probe.name);
    return matches(pattern, name) || matches(pattern, std::string_view(name).substr(5));
}

Result<Listed> list_file(const ProbeOptions& options) {
    const UniqueFd fd = TRY(open_read(options.file));
    std::error_code error;
    Listed listed{std::filesystem::canonical(options.file, error).string(), {}, {}};
    if (error) listed.path = options.file;
    const elf::ByteSource source = elf::source_of_fd(fd.get());
    const elf::Header header = TRY(elf::read_header(source));
    const std::vector<elf::Section> sections = TRY(elf::read_sections(source, header));
    for (elf::StaticProbe& probe : TRY(elf::read_static_probes(source, header, sections))) {
        const auto offset = elf::offset_of_vaddr(header.segments, probe.location);
        if (offset && matches_probe(options.pattern, probe)) listed.probes.push_back({std::move(probe), *offset});
    }
    const auto wanted = [&](std::string_view symbol) { return matches_function(options.pattern, symbol); };
    for (elf::FunctionSymbol& function : TRY(elf::find_functions(source, header, sections, wanted, max_functions)))
        if (const auto offset = elf::offset_of_vaddr(header.segments, function.address))
            listed.functions.push_back(
                {symbol::demangle(function.name), std::move(function.name), *offset, function.size, function.ifunc});
    std::ranges::sort(listed.functions, [](const ListedFunction& a, const ListedFunction& b) {
        return std::tie(a.name, a.offset, a.symbol) < std::tie(b.name, b.offset, b.symbol);
    });
    return listed;
}

std::string text_of(const Listed& listed) {
    std::string text =
        listed.probes.empty() ? "# no static probes\n" : "#   offset  semaphore  static probe  arguments\n";
    for (const auto& [probe, offset] : listed.probes)
        text += fmt::format("{:>#10x}  {:<9}  {}{}{}\n", offset, probe.semaphore != 0 ? "yes" : "no",
                            printable(probe_event(probe, listed)), probe.arguments.empty() ? "" : "  ",
                            printable(probe.arguments));
    text += listed.functions.empty() ? "# no functions\n" : "#   offset      size  function  event\n";
    for (const ListedFunction& function : listed.functions)
        text += fmt::format("{:>#10x}  {:>8}  {}{}  {}\n", function.offset, function.size, printable(function.name),
                            function.ifunc ? " [resolver]" : "", printable(function_event(function, listed)));
    return text;
}

std::string json_of(const Listed& listed) {
    JsonWriter json;
    json.object();
    json.member("file", listed.path);
    json.list("probes", listed.probes, [&](const ListedProbe& one) {
        json.object();
        json.member("provider", one.probe.provider);
        json.member("name", one.probe.name);
        json.member("offset", one.offset);
        json.member("semaphore", one.probe.semaphore != 0);
        json.member("arguments", one.probe.arguments);
        json.member("event", probe_event(one.probe, listed));
        json.end_object();
    });
    json.list("functions", listed.functions, [&](const ListedFunction& function) {
        json.object();
        json.member("name", function.name);
        json.member("symbol", function.symbol);
        json.member("offset", function.offset);
        json.member("size", function.size);
        json.member("resolver", function.ifunc);
        json.member("event", function_event(function, listed));
        json.end_object();
    });
    json.end_object();
    return json.take() + "\n";
}

Result<int> probe(const ProbeOptions& options) {
    auto listed = list_file(options);
    if (!listed) {
        std::string& why = listed.error().message;
        if (why.find(options.file) == std::string::npos) why = options.file + ": " + why;
        return std::unexpected(std::move(listed).error());
    }
    return print_paged(options.output.json ? json_of(*listed) : text_of(*listed), options.output);
}

}  // namespace

Action add_probe(CLI::App& command) {
    auto options = std::make_shared<ProbeOptions>();
    command.add_option("ACTION", options->action, "list: what can be probed in a program or library")
        ->required()
        ->check(CLI::IsMember({"list"}));
    command.add_option("PROGRAM", options->file, "a program or shared library")->required();
    command.add_option(
        "PATTERN", options->pattern,
        "only functions whose demangled names, and static probes whose PROVIDER:NAME, start with it; with "
        "* it is for the whole name");
    add_output_options(command, options->output);
    return [options] { return probe(*options); };
}

}  // namespace flamewire::cli
