// The instructions that get the probes on the returns of a function in an ELF file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/probes/function_exits.h"
#include "base/result.h"
#include "elf/elf_file.h"
#include "elf/function_symbols.h"

namespace flamewire::agent {

// A file, open for several searches.
struct ReturnFile {
    const elf::ByteSource& source;
    const elf::Header& header;
    const std::vector<elf::Section>& sections;
    const std::string& path;  // for messages
    unwind::Arch arch;
    InstructionClasses emulated;
};

// `needs`: what the fields read, as at the return. `uses_result`: they read the function's result, which a function that
// ends with a jump to another one does not have yet. unsupported: where the function returns is not certain.
Result<std::vector<FunctionExit>> find_return_places(const ReturnFile& file, const elf::FunctionSymbol& function,
                                                     const ProbeNeeds& needs, bool uses_result);

}  // namespace flamewire::agent
