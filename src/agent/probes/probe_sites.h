// The places in one ELF file that a probe names.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agent/perf/probe_spec.h"
#include "agent/probes/probe_instruction.h"
#include "base/result.h"

namespace flamewire::agent {

// One instruction.
struct ProbeSite {
    std::string provider, name;            // of the function or USDT probe; empty if only an offset was given
    std::uint64_t offset = 0;              // in the file, bytes
    std::uint64_t reference_counter = 0;   // offset of a USDT semaphore in the file; 0: none
    std::vector<ProbeArgument> arguments;  // with registers instead of $arg1 … $arg6
    bool emulated = false;                 // by the kernel, as far as known
};

// `fd` is an open file, `path` its name for messages. Sites with the same provider and name belong to one event. Empty:
// the file has no such function or USDT probe. Errors: invalid (not an ELF file, an ambiguous name, or code that cannot
// be probed), unsupported, too_large. `emulated`: by this kernel; nullopt: unknown. A server
// (`by_server`) may choose only instructions that decoding from a symbol reaches.
Result<std::vector<ProbeSite>> find_probe_sites(const ProbeSpec& probe, int fd, const std::string& path,
                                                std::optional<InstructionClasses> emulated, bool by_server);

// Replaces $arg1, $arg2, … by these operands. Nullopt: there is no such operand, or `fetch` needs the result of a
// function.
std::optional<std::string> with_arguments(std::string_view fetch, std::span<const std::string_view> operands);

// Replaces $arg1 … $arg6 by the registers that carry the first arguments of a C function. Nullopt: this architecture or
// argument is not supported. `machine`: e_machine of ELF.
std::optional<std::string> with_argument_registers(std::string_view fetch, std::uint16_t machine);

}  // namespace flamewire::agent
