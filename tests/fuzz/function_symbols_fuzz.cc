// Arbitrary bytes as an ELF file with symbol tables: functions must be sorted, each once, and within the limit.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <tuple>

#include "elf/function_symbols.h"

namespace {

void require(bool holds) {
    if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace flamewire;
    constexpr std::size_t limit = 50;
    const elf::ByteSource source = elf::source_of_bytes(Bytes(reinterpret_cast<const std::byte*>(data), size));
    const auto header = elf::read_header(source);
    const auto sections = header ? elf::read_sections(source, *header) : std::vector<elf::Section>();
    if (!header || !sections) return 0;
    const auto functions = elf::find_functions(
        source, *header, *sections, [](std::string_view name) { return name.size() % 8 != 7; }, limit);
    if (!functions) return 0;
    require(functions->size() <= limit);
    const auto key = [](const elf::FunctionSymbol& f) { return std::tie(f.address, f.name); };
    for (std::size_t i = 0; i < functions->size(); ++i) {
        const elf::FunctionSymbol& function = (*functions)[i];
        require(!function.name.empty() && function.name.size() % 8 != 7);
        require(i == 0 || key((*functions)[i - 1]) < key(function));
        const auto offset = elf::offset_of_vaddr(header->segments, function.address);
        if (offset) (void)elf::vaddr_of_offset(header->segments, *offset, 4096);
        const std::uint64_t middle = function.address + function.size / 2;
        if (i >= 4 || middle < function.address) continue;
        const auto found = elf::function_at(source, *header, *sections, middle);
        require(found && *found && (*found)->address >= function.address);
    }
    return 0;
}
