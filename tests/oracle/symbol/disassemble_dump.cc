// Prints the instructions of functions of an ELF file, for comparison with objdump: `address size text` per line, separated
// by tabs, with `-` before the size of an unknown instruction. Usage: disassemble_dump ELF < hexadecimal `start size`
// lines, one per function.
#include <fmt/format.h>

#include <cstdio>
#include <iostream>
#include <limits>

#include "symbol/disassembly/disassembly.h"
#include "symbol/symbolizer.h"

using namespace flamewire::symbol;

int main(int argc, char** argv) {
    if (argc != 2) {
        fmt::print(stderr, "disassemble_dump: which ELF file?\n");
        return 2;
    }
    ModuleIdentity module;
    module.path = argv[1];
    Symbolizer symbolizer(Config{});
    std::uint64_t start = 0, size = 0;
    while (std::cin >> std::hex >> start >> size) {
        const ModuleCode code = symbolizer.code(module, start, size);
        const auto instructions = disassemble(code.view(), std::numeric_limits<std::size_t>::max());
        if (!code.problem.empty() || !instructions) {
            fmt::print(stderr, "{:x}: {}\n", start, instructions ? code.problem : instructions.error().message);
            return 1;
        }
        for (const Instruction& instruction : *instructions)
            fmt::print("{:x}\t{}{}\t{}\n", instruction.address, instruction.known ? "" : "-", instruction.size,
                       instruction.text);
    }
    return 0;
}
