// Arbitrary bytes as an ELF file: headers, sections, notes and address mapping must stay within bounds.
#include <cstddef>
#include <cstdint>

#include "elf/elf_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace flamewire;
    const Bytes bytes(reinterpret_cast<const std::byte*>(data), size);
    const elf::ByteSource source = elf::source_of_bytes(bytes);
    (void)elf::build_id_of_notes(bytes, size % 2 == 0);
    const auto header = elf::read_header(source);
    if (!header) return 0;
    (void)elf::read_sections(source, *header);
    (void)elf::read_build_id(source, *header);
    for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{0x1234}, ~std::uint64_t{0}})
        for (const std::uint64_t page_size : {0u, 1u, 4096u, 65536u})
            (void)elf::vaddr_of_offset(header->segments, offset, page_size);
    return 0;
}
