// Arbitrary words as an .ARM.exidx index and its tables, and as code that is followed to its return. The first 8 bytes
// are the position and size of the index and the address to find. The rest is the address space, repeated, so that
// every pointer of the index is valid.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/byte_reader.h"
#include "base/bytes.h"
#include "unwind/code/arm_return.h"
#include "unwind/tables/exidx.h"

namespace {

// Checks what users of a row rely on.
void check(const flamewire::unwind::FrameRow& row, std::uint64_t address) {
    using flamewire::unwind::ExpressionRange;
    const auto fits = [&](const ExpressionRange& range) {
        return range.begin <= row.expressions.size() && range.size <= row.expressions.size() - range.begin;
    };
    if (address < row.start || address >= row.end || row.return_column > 15 || row.cfa_register > 15) std::abort();
    if (!fits(row.cfa_expression)) std::abort();
    for (const auto& rule : row.registers)
        if (!fits(rule.expression)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace flamewire;
    const Bytes bytes(reinterpret_cast<const std::byte*>(data), size);
    ByteReader reader(bytes);
    const auto table = reader.u16(), entries = reader.u16();
    const auto asked = reader.u32();
    const Bytes space = bytes.subspan(reader.position());
    if (!reader.ok() || space.size() < 4) return 0;

    unsigned reads = 0;
    const unwind::WordReader wrapped = [&](std::uint64_t address) -> std::optional<std::uint32_t> {
        // A search of 2^16 entries reads 17 words, a description has at most 1 + 1 + 255 words, and each of about 20
        // reads of code has at most 40 instructions of two words.
        constexpr unsigned most_reads = 2000;
        if (++reads > most_reads) std::abort();
        std::uint32_t word = 0;
        (void)read_at(space, address / 4 * 4 % (space.size() - 3), word);
        return word;
    };
    const unwind::WordReader bounded = [&](std::uint64_t address) -> std::optional<std::uint32_t> {
        std::uint32_t word = 0;
        if (!read_at(space, address, word)) return {};
        return word;
    };
    for (const std::uint64_t address : {std::uint64_t{asked}, std::uint64_t{asked} + 1, std::uint64_t{asked} << 8}) {
        reads = 0;
        if (const auto row = unwind::exidx_row(wrapped, table, std::uint64_t{entries} * 8, address))
            check(*row, address);
        if (const auto row = unwind::exidx_row(bounded, table, std::uint64_t{entries} * 8, address))
            check(*row, address);
    }
    (void)unwind::exidx_row(bounded, table, ~std::uint64_t{0}, asked);

    const unwind::CodeReader code = [&](std::uint64_t address, std::span<std::byte> out) {
        // At most two blocks per instruction, twice that if a block cannot be read, and a few to distinguish ARM from
        // Thumb.
        constexpr unsigned most_reads = 2 * (2 * 600 * 2 + 2 * 1024 + 64);
        if (++reads > most_reads) std::abort();
        if (out.size() > 4 && asked % 2 == 0) return false;
        for (std::byte& byte : out) byte = space[static_cast<std::size_t>(address++ % space.size())];
        return true;
    };
    for (const bool return_address : {false, true}) {
        const std::uint64_t start = asked & ~std::uint64_t{1};
        reads = 0;
        if (const auto row = unwind::row_by_arm_code(code, start, return_address)) check(*row, start);
    }
    return 0;
}
