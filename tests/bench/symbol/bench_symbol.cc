// Symbolizes addresses of an ELF file; run.py measures its CPU time from outside.
// Usage: bench_symbol ELF PASSES < hexadecimal addresses. The first pass builds the index; later ones are warm. With
// PASSES 0 it only reads the input.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "symbol/symbolizer.h"

int main(int argc, char** argv) {
    using namespace flamewire::symbol;
    if (argc != 3) {
        fmt::print(stderr, "usage: bench_symbol ELF PASSES < addresses\n");
        return 2;
    }
    std::vector<flamewire::CodeAddress> addresses;
    char text[64];
    while (std::fgets(text, sizeof text, stdin) != nullptr)
        addresses.push_back({std::strtoull(text, nullptr, 16), false});
    ModuleIdentity module;
    module.path = argv[1];
    Config config;
    config.binaries = {argv[1]};
    Symbolizer symbolizer(config);
    std::size_t frames = 0, strings = 0;
    for (int pass = 0; pass < std::atoi(argv[2]); ++pass) {
        const Resolved resolved = symbolizer.resolve(module, addresses);
        frames = resolved.frames.size();
        strings = resolved.strings.size();
    }
    fmt::print("{} addresses, {} frames, {} strings\n", addresses.size(), frames, strings);
    return 0;
}
