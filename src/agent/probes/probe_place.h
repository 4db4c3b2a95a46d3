// Chooses the instruction of a function that gets its uprobe. A hit traps once if the kernel emulates the instruction
// there, otherwise twice, and the second trap is the expensive one: 0.6 against 9.6 us in one virtual machine. So the
// probe moves to the first emulated instruction that every call passes exactly once before it changes what the probe
// reads. `free` of glibc 2.36 starts with `test %rdi,%rdi; je`: the probe goes to the je.
//
// The kernel decides what can be probed at all. It refuses, for example, int3, privileged instructions, and x86 with
// lock or cs and ds prefixes. Then creating the probe fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "agent/probes/probe_instruction.h"
#include "unwind/frame/registers.h"

namespace flamewire::agent {

struct ProbedFunction {
    unwind::Arch arch = unwind::Arch::x86_64;
    std::span<const std::byte> code;  // from the entry; 64 KiB at most are used
    // `code` is the whole function. False also if parts of it are elsewhere, as in NAME.cold: they may jump back.
    bool complete = false;
};

struct ProbeNeeds {
    // DWARF numbers of the registers that the probe reads as at the call, a bit each. Includes sp if it reads arguments
    // on the stack or the return address.
    std::uint32_t registers = 0;
    bool entry = false;  // the probe must be at the entry, as return probes must
};

struct ProbePlace {
    std::uint32_t offset = 0;  // from the entry
    InstructionClass instruction_class = InstructionClass::other;
    bool emulated = false;  // always false for 32-bit Arm, where the kernel emulates most instructions
    [[nodiscard]] bool is_entry() const { return offset == 0; }
};

// The entry if no other place is certain to be passed exactly once per call. nullopt if no place is safe: a literal
// load of aarch64 at the entry (see InstructionClass).
std::optional<ProbePlace> place_probe(const ProbedFunction& function, const ProbeNeeds& needs,
                                      InstructionClasses emulated);

}  // namespace flamewire::agent
