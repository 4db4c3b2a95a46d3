#include "unwind/code/x86_return.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "unwind/code/follow_code.h"
#include "unwind/code/x86_instruction.h"

namespace flamewire::unwind {
namespace {

constexpr CodeConvention x86_64_convention{
    .sp = 7,
    .pc = 16,
    .link = no_register,
    .return_column = 16,
    .word_size = 8,
    .alignment = 1,
    .preserved = 0xf048,     // rbx, rbp, r12 to r15
    .lost_by_call = 0x0f37,  // rax, rdx, rcx, rsi, rdi, r8 to r11
    .known_when_stopped = 0xffff,
    .frame_pointers = 1u << 6,
    .most_instructions = 3000,  // loops of vector code are often unrolled
};

// Reads blocks, because reading the file costs much more than decoding an instruction.
class Code final : public CodeView {
public:
    explicit Code(const CodeReader& read) : read_(read) {}

    [[nodiscard]] std::optional<CodeEffect> effect_at(std::uint64_t at) const override {
        // Addresses wrap: a jump below the start of the address space leads to its end.
        const std::uint64_t skipped = at - start_;
        if (skipped > size_ || size_ - skipped < longest_x86_instruction) fill(at);
        return x86_64_effect(std::span(block_)
                                 .subspan(static_cast<std::size_t>(at - start_))
                                 .first(size_ - static_cast<std::size_t>(at - start_)));
    }

private:
    // Reads a block at `at`. Near the end of the code, reads as much as possible.
    void fill(std::uint64_t at) const {
        start_ = at;
        size_ = block_.size();
        while (size_ > 0 && !read_(at, std::span(block_).first(size_)))
            size_ = size_ > longest_x86_instruction ? std::max(size_ / 2, longest_x86_instruction) : size_ - 1;
    }

    const CodeReader& read_;
    mutable std::array<std::byte, 256> block_{};
    mutable std::uint64_t start_ = 0;
    mutable std::size_t size_ = 0;
};

// The row before or between "push %rbp; mov %rsp, %rbp", for functions that never return.
std::optional<FrameRow> row_in_prologue(const Code& code, std::uint64_t pc) {
    using Kind = CodeEffect::Kind;
    constexpr std::uint8_t rbp = 6;
    const auto pushes = [&](std::uint64_t at) {
        const auto effect = code.effect_at(at);
        return effect && effect->kind == Kind::push && effect->mask == 1u << rbp && effect->size == 1;
    };
    const auto sets = [&](std::uint64_t at) {
        const auto effect = code.effect_at(at);
        return effect && effect->kind == Kind::copy_to && effect->reg == rbp && effect->bytes == 0;
    };
    const bool before = pushes(pc) && sets(pc + 1), between = !before && sets(pc) && pushes(pc - 1);
    if (!before && !between) return std::nullopt;
    FrameRow row;
    row.start = pc;
    row.end = pc + 1;
    row.cfa_register = x86_64_convention.sp;
    row.cfa_offset = before ? 8 : 16;
    row.return_column = x86_64_convention.return_column;
    row.registers[row.return_column] = {.kind = RegisterRule::Kind::at_cfa, .offset = -8};
    if (between) row.registers[rbp] = {.kind = RegisterRule::Kind::at_cfa, .offset = -16};
    return row;
}

}  // namespace

std::optional<FrameRow> row_by_x86_64_code(const CodeReader& read, std::uint64_t pc, bool return_address) {
    const Code code(read);
    auto row = row_by_following(code, x86_64_convention, pc, return_address);
    if (!row && !return_address) row = row_in_prologue(code, pc);
    return row;
}

bool follows_x86_64_call(std::uint64_t address, const MemoryReader& read) {
    // call rel32; call *%reg; then calls with longer operands.
    for (const unsigned size : {5u, 2u, 3u, 6u, 7u, 4u, 8u}) {
        std::array<std::byte, 8> code{};
        const auto value = read(address - size, 8);
        if (!value) continue;
        for (std::size_t i = 0; i < code.size(); ++i) code[i] = static_cast<std::byte>(*value >> 8 * i);
        const auto effect = x86_64_effect(std::span(code).first(size));
        if (effect && effect->kind == CodeEffect::Kind::call && effect->size == size) return true;
    }
    return false;
}

}  // namespace flamewire::unwind
