// Arbitrary bytes as x86-64 code that is followed to its return. The first byte selects the start in the rest, and
// whether the code ends with the input or repeats it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/bytes.h"
#include "unwind/code/x86_instruction.h"
#include "unwind/code/x86_return.h"
#include "unwind/tables/rule.h"

namespace {

// Checks what users of a row rely on.
void check(const flamewire::unwind::FrameRow& row, std::uint64_t address) {
    using Kind = flamewire::unwind::RegisterRule::Kind;
    const auto& expression = row.cfa_expression;
    if (row.start != address || row.end != address + 1 || row.return_column != 16) std::abort();
    if (row.cfa_is_expression ? expression.size == 0 : row.cfa_register > 15) std::abort();
    if (expression.begin > row.expressions.size() || expression.size > row.expressions.size() - expression.begin)
        std::abort();
    if (row.registers[16].kind != Kind::at_cfa || row.registers[16].offset >= 0) std::abort();
    (void)flamewire::unwind::compile_rule(row, flamewire::unwind::arch_x86_64);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace flamewire;
    const Bytes bytes(reinterpret_cast<const std::byte*>(data), size);
    if (size < 2) return 0;
    const Bytes code = bytes.subspan(1);
    for (std::size_t at = 0; at < code.size(); ++at) {
        const auto effect = unwind::x86_64_effect(code.subspan(at));
        if (effect && (effect->size == 0 || effect->size > 15 || effect->size > code.size() - at)) std::abort();
    }

    constexpr std::uint64_t base = std::uint64_t{1} << 20;
    const bool repeated = (data[0] & 1) != 0;
    unsigned reads = 0;
    const unwind::CodeReader read = [&](std::uint64_t address, std::span<std::byte> out) {
        // At the end of the code, each instruction is read again in shorter pieces.
        constexpr unsigned most_reads = 20 * (3000 + 8);
        if (++reads > most_reads) std::abort();
        const std::uint64_t from = address - base;
        if (!repeated && (from > code.size() || out.size() > code.size() - from)) return false;
        for (std::size_t i = 0; i < out.size(); ++i) out[i] = code[static_cast<std::size_t>((from + i) % code.size())];
        return true;
    };
    const std::uint64_t start = base + (data[0] >> 1) % code.size();
    for (const bool return_address : {false, true}) {
        reads = 0;
        if (const auto row = unwind::row_by_x86_64_code(read, start, return_address)) check(*row, start);
    }
    const unwind::MemoryReader words = [&](std::uint64_t address,
                                           std::size_t bytes_read) -> std::optional<std::uint64_t> {
        std::uint64_t value = 0;
        if (bytes_read != sizeof value || !read_at(code, address - base, value)) return {};
        return value;
    };
    (void)unwind::follows_x86_64_call(start, words);
    return 0;
}
