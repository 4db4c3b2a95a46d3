// Arbitrary bytes as the code of a function whose returns get probes. The first byte selects the architecture and the
// options, the second the emulated classes, the third the size of the first of two parts.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "agent/probes/function_exits.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace flamewire;
    using namespace flamewire::agent;
    if (size < 4) return 0;
    const std::string code(reinterpret_cast<const char*>(data + 3), size - 3);
    const std::size_t first = std::min<std::size_t>(1 + data[2], code.size());
    ExitSearch search{.arch = static_cast<unwind::Arch>(data[0] & 3)};
    search.parts = {{0x1000, code.substr(0, first)}, {0x1000 + first + 64, code.substr(first)}};
    search.table_entry = [&](std::uint64_t address) { return std::optional(address & 0x10ff); };
    search.is_function = [&](std::uint64_t address) { return (address & 1) == (data[0] >> 2 & 1u); };
    search.is_balanced = [&](std::uint64_t) { return (data[0] & 8) != 0; };
    search.entered_from_outside = [&] { return (data[0] & 16) != 0; };
    search.catches = (data[0] & 32) != 0;
    search.needs = {.registers = static_cast<std::uint32_t>(data[0] >> 6), .entry = (data[2] & 1) != 0};
    for (unsigned i = 0; i < instruction_classes; ++i)
        if ((data[1] >> i % 8 & 1) != 0) search.emulated.insert(static_cast<InstructionClass>(i));
    const FunctionExits found = find_exits(search);
    if (found.exits.empty() == found.problem.empty()) std::abort();
    std::uint64_t last = 0;
    for (const FunctionExit& exit : found.exits) {
        if (exit.address <= last && last != 0) std::abort();
        last = exit.address;
        if (!search.parts[0].contains(exit.address) && !search.parts[1].contains(exit.address)) std::abort();
    }
    (void)any_branch(search.arch, std::as_bytes(std::span(code)), 0x1000,
                     [](const Branch& branch) { return branch.to == branch.from; });
    return 0;
}
