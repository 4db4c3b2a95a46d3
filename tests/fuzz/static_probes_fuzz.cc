// Arbitrary bytes as an ELF file with static probes, and as operands of each machine: what the kernel is asked to fetch
// must have no characters that could end an argument.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "elf/static_probes.h"

namespace {

using namespace flamewire;

void fetch(std::uint16_t machine, bool is_64, std::string_view arguments) {
    constexpr std::string_view allowed = "%\\+-():0123456789abcdefghijklmnopqrstuvwxyz";
    for (const std::string& argument : elf::fetch_arguments(machine, is_64, arguments)) {
        if (argument.find_first_not_of(allowed) != std::string::npos || argument.size() > 50) std::abort();
        if (!argument.empty() && argument.rfind(":u") == std::string::npos && argument.rfind(":s") == std::string::npos)
            std::abort();
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const Bytes bytes(reinterpret_cast<const std::byte*>(data), size);
    for (const unsigned machine : {3u, 22u, 40u, 62u, 183u, 243u})
        fetch(static_cast<std::uint16_t>(machine), machine != 3 && machine != 40, as_text(bytes));

    const elf::ByteSource source = elf::source_of_bytes(bytes);
    const auto header = elf::read_header(source);
    const auto sections = header ? elf::read_sections(source, *header) : std::vector<elf::Section>();
    if (!header || !sections) return 0;
    const auto probes = elf::read_static_probes(source, *header, *sections);
    if (!probes) return 0;
    for (const elf::StaticProbe& probe : *probes) {
        if (probe.name.empty() || probe.name.size() + probe.arguments.size() > size) std::abort();
        (void)elf::offset_of_vaddr(header->segments, probe.location);
        fetch(header->machine, header->is_64, probe.arguments);
    }
    return 0;
}
