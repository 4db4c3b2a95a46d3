// Values of probes in the kernel's syntax: which registers carry the arguments and the result of a C function.
// Sources: System V AMD64 ABI 3.2.3; Intel386 psABI 2.2.3; AAPCS64 6.8.2; AAPCS32 6.5; regs_query_register_offset() of the
// kernel.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/perf/probe_spec.h"
#include "agent/probes/probe_place.h"
#include "unwind/frame/registers.h"

namespace flamewire::agent {

struct CallConvention {
    std::uint16_t machine;
    unwind::Arch arch;
    std::array<std::string_view, 6> names;      // in the kernel's syntax
    std::array<std::uint8_t, 6> dwarf_numbers;  // of the registers that these names use
    std::string_view result;                    // its DWARF number is 0 everywhere
};

// nullptr: the architecture is not supported. `machine`: e_machine of ELF.
const CallConvention* convention_of(std::uint16_t machine);

// What the fields read must be as at the call, or at the return.
ProbeNeeds needs_of(const std::vector<ProbeArgument>& arguments, const CallConvention& known);

// Replaces $arg1, $arg2, … by these operands, and $retval by `result`. Nullopt: there is no such operand, or no result.
std::optional<std::string> with_arguments(std::string_view fetch, std::span<const std::string_view> operands,
                                          std::string_view result = {});

// Replaces $arg1 … $arg6 by the registers that carry the first arguments of a C function. Nullopt: this architecture or
// argument is not supported.
std::optional<std::string> with_argument_registers(std::string_view fetch, std::uint16_t machine);

// Replaces $retval by the register that carries the result of a function. Nullopt: the architecture is not supported, or
// `fetch` needs an argument.
std::optional<std::string> with_result_register(std::string_view fetch, std::uint16_t machine);

bool uses_result_of_function(std::string_view fetch);

}  // namespace flamewire::agent
