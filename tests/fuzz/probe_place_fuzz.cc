// Arbitrary bytes as the code of a function that gets a probe. The first byte selects the architecture and what the
// probe needs, the second the emulated classes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "../unit/agent_probes/argument_registers.h"
#include "agent/probes/probe_place.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace flamewire;
    using namespace flamewire::agent;
    if (size < 2) return 0;
    const std::span<const std::byte> code(reinterpret_cast<const std::byte*>(data + 2), size - 2);
    const auto arch = static_cast<unwind::Arch>(data[0] & 3);
    InstructionClasses emulated;
    for (unsigned i = 0; i < instruction_classes; ++i)
        if ((data[1] >> i % 8 & 1) != 0) emulated.insert(static_cast<InstructionClass>(i));
    ProbeNeeds needs{.entry = (data[0] & 8) != 0};
    if ((data[0] & 16) != 0) needs.registers = argument_registers(arch);
    const auto place = place_probe({arch, code, (data[0] & 4) != 0}, needs, emulated);
    if (!place) {
        if (arch != unwind::Arch::aarch64) std::abort();
        return 0;
    }
    if (!place->is_entry() && (!place->emulated || needs.entry || place->offset >= code.size())) std::abort();
    if (!place->emulated) return 0;
    const auto found = probe_instruction(arch, code.subspan(place->offset));
    if (!found || found->instruction_class != place->instruction_class || found->size == 0) std::abort();
    return 0;
}
