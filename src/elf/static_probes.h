// Static probes of a program (USDT): places that its authors marked with DTRACE_PROBE() or STAP_PROBE() of <sys/sdt.h>,
// with the operands of their arguments. Source: sys/sdt.h of SystemTap (notes of type 3, "stapsdt"); the kernel's
// Documentation/trace/uprobetracer.rst, and regoffset_table in arch/*/kernel/ptrace.c for register names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "elf/elf_file.h"

namespace flamewire::elf {

struct StaticProbe {
    std::string provider, name;
    std::string arguments;        // operands as the assembler writes them: "-4@%eax 8@-16(%rbp)"
    std::uint64_t location = 0;   // ELF virtual address of its nop instruction
    std::uint64_t semaphore = 0;  // ELF virtual address of a 16-bit counter of its users; 0 if the probe is always on
};

// All probes in the order of the file. A probe that was inlined several times is there several times. Notes that are
// damaged are omitted. too_large: notes beyond any real size. invalid: a section is not inside the file.
Result<std::vector<StaticProbe>> read_static_probes(const ByteSource& source, const Header& header,
                                                    const std::vector<Section>& sections);

// The arguments in the language of the kernel's uprobe_events, for example "%ax:s32" and "-16(%bp):u64". Empty for an
// operand that this language does not have (two registers, symbols, floating point). Constants ("\5:s32") need Linux
// 5.4. `machine` is Header::machine: x86-64, i386, AArch64, Arm and s390; all operands of others are empty.
std::vector<std::string> fetch_arguments(std::uint16_t machine, bool is_64, std::string_view arguments);

}  // namespace flamewire::elf
