// Prints the row of every entry in an ELF file's .ARM.exidx, inside the function and at its first instruction:
//   START none|CFA rN=OFFSET... ret=N    where the CFA is rN+OFFSET, and OFFSET is relative to the CFA
#include <elf.h>

#include <algorithm>
#include <cstdio>

#include "base/file.h"
#include "elf/elf_file.h"
#include "unwind/tables/exidx.h"

using namespace flamewire;
using namespace flamewire::unwind;

namespace {

void print(const std::optional<FrameRow>& row) {
    if (!row) {
        std::printf(" none");
        return;
    }
    if (row->cfa_is_expression)
        std::printf(" expression");
    else
        std::printf(" r%u%+lld", row->cfa_register, static_cast<long long>(row->cfa_offset));
    for (std::size_t number = 0; number < 16; ++number) {
        const RegisterRule& rule = row->registers[number];
        if (rule.kind == RegisterRule::Kind::at_cfa)
            std::printf(" r%zu=%+lld", number, static_cast<long long>(rule.offset));
        else if (rule.kind != RegisterRule::Kind::same)
            std::printf(" r%zu=?", number);
    }
    std::printf(" ret=%u%s", row->return_column, row->signal_frame ? " signal" : "");
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    const auto file = read_file(argv[1], std::size_t{1} << 30);
    if (!file) return 1;
    const Bytes bytes = as_bytes_view(*file);
    const elf::ByteSource source = elf::source_of_bytes(bytes);
    const auto header = elf::read_header(source);
    if (!header) return 1;
    const auto sections = elf::read_sections(source, *header);
    if (!sections) return 1;
    const auto index = std::ranges::find(*sections, std::uint32_t{SHT_ARM_EXIDX}, &elf::Section::type);
    if (index == sections->end()) return 0;

    const WordReader read = [&](std::uint64_t address) -> std::optional<std::uint32_t> {
        for (const elf::Segment& segment : header->segments) {
            if (address < segment.vaddr || address - segment.vaddr >= segment.file_size) continue;
            std::uint32_t word = 0;
            if (read_at(bytes, segment.offset + (address - segment.vaddr), word)) return word;
        }
        return {};
    };
    for (std::uint64_t place = index->address; place < index->address + index->size; place += 8) {
        const std::uint32_t offset = read(place).value_or(0);
        const auto start = static_cast<std::uint32_t>(place + ((offset & 0x7fffffff) | (offset & 0x40000000) << 1));
        std::printf("%#x", start);
        print(exidx_row(read, index->address, index->size, std::uint64_t{start} + 1));
        std::printf(" first");
        print(exidx_row(read, index->address, index->size, start));
        std::printf("\n");
    }
    return 0;
}
