// Arbitrary bytes as a line number program: rows must be sorted and within the budget. The input is a byte of flags,
// the sizes of .debug_line and .debug_line_str (2 bytes each), and these sections; the rest is .debug_str.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/byte_reader.h"
#include "symbol/dwarf/line_program.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace flamewire;
    ByteReader in(Bytes(reinterpret_cast<const std::byte*>(data), size));
    symbol::LineSections sections;
    sections.big_endian = (in.u8() & 1) != 0;
    const std::size_t lines = in.u16(), texts = in.u16();
    sections.lines = in.bytes(std::min(lines, in.remaining()));
    sections.line_strings = in.bytes(std::min(texts, in.remaining()));
    sections.strings = in.bytes(in.remaining());
    symbol::IndexBudget budget(0);
    const symbol::LineProgram program = symbol::run_line_program(sections, 0, budget);
    if (program.rows.size() * sizeof(symbol::LineRow) > budget.limit()) std::abort();
    if (!std::ranges::is_sorted(program.rows, {}, &symbol::LineRow::address)) std::abort();
    for (std::uint32_t file = 0; file < 64; ++file)
        if (program.path(file, "/build").size() >= 4096) std::abort();
    return 0;
}
