// The places in one ELF file that a probe names.
#pragma once

#include <cstdint>
#include <optional>
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

}  // namespace flamewire::agent
