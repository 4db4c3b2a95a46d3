// Prints the results of src/symbol for addresses, for comparison with other symbolizers: one JSON array of frames per line,
// [[function, file, line]…], innermost first. Names are linker names, because demanglers differ in spelling. Usage:
// symbolize_dump ELF [--demangle] [--no-inlines] [--return-addresses] [--binary FILE]... < hexadecimal addresses, one per line
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "symbol/symbolizer.h"

using namespace flamewire::symbol;

namespace {

std::string quoted(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\')
            out += {'\\', c};
        else if (byte < 0x20)
            out += fmt::format("\\u{:04x}", static_cast<unsigned>(byte));
        else
            out += c;
    }
    return out + '"';
}

void print_frames(const Resolved& resolved, std::size_t address) {
    std::string line = "[";
    for (std::uint32_t i = resolved.first[address]; i < resolved.first[address + 1]; ++i) {
        const SourceFrame& frame = resolved.frames[i];
        if (line.size() > 1) line += ',';
        line += fmt::format("[{},{},{}]", quoted(resolved.strings[frame.function]),
                            quoted(resolved.strings[frame.file]), frame.line);
    }
    fmt::print("{}]\n", line);
}

}  // namespace

int main(int argc, char** argv) {
    Config config;
    config.demangle = false;
    bool return_addresses = false;
    for (int i = 2; i < argc; ++i) {
        const std::string_view option = argv[i];
        config.demangle |= option == "--demangle";
        config.inlines &= option != "--no-inlines";
        return_addresses |= option == "--return-addresses";
        if (option == "--binary" && i + 1 < argc) config.binaries.emplace_back(argv[++i]);
    }
    if (argc < 2) {
        fmt::print(stderr, "symbolize_dump: which ELF file?\n");
        return 2;
    }
    ModuleIdentity module;
    module.path = argv[1];
    config.binaries.insert(config.binaries.begin(), argv[1]);
    Symbolizer symbolizer(config);
    std::vector<flamewire::CodeAddress> addresses;
    char text[64];
    while (std::fgets(text, sizeof text, stdin) != nullptr)
        addresses.push_back({std::strtoull(text, nullptr, 16), return_addresses});
    const Resolved resolved = symbolizer.resolve(module, addresses);
    for (std::size_t i = 0; i < addresses.size(); ++i) print_frames(resolved, i);
    if (const ModuleReport report = symbolizer.report(module); !report.problem.empty())
        fmt::print(stderr, "symbolize_dump: {}\n", report.problem);
    return 0;
}
