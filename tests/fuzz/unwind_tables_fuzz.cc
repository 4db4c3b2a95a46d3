// Arbitrary bytes as an ELF file with unwind tables. Rows are searched at the addresses that the file declares as code.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "unwind/tables/module_tables.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace flamewire;
    const Bytes bytes(reinterpret_cast<const std::byte*>(data), size);
    const elf::ByteSource source = elf::source_of_bytes(bytes);
    unwind::PageCache pages(std::size_t{64} << 10);
    unwind::TableWork work;
    const auto tables = unwind::ModuleTables::open(1, source, pages, work);
    if (!tables) return 0;
    const auto check_row = [&](std::uint64_t address) {
        const auto row = (*tables)->row_at(address);
        if (row && (address < row->start || address >= row->end)) std::abort();
        std::array<std::byte, 16> out{};
        (void)(*tables)->read(address, out);
    };
    if (const auto header = elf::read_header(source))
        for (const elf::Segment& segment : header->segments) {
            if (segment.type != elf::segment_load) continue;
            for (const std::uint64_t offset : {0u, 1u, 16u, 47u, 256u}) check_row(segment.vaddr + offset);
            check_row(segment.vaddr + segment.file_size);
        }
    check_row((*tables)->entry());
    for (const unwind::CodeRange& function : (*tables)->some_functions(8))
        check_row(function.start + function.size - 1);
    if ((*tables)->memory_bytes() > (std::size_t{64} << 20)) std::abort();
    return 0;
}
