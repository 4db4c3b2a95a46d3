#include "unwind/code/arm_return.h"

#include <array>

#include "unwind/code/arm_instruction.h"
#include "unwind/code/follow_code.h"

namespace flamewire::unwind {
namespace {

constexpr CodeConvention arm_convention{
    .sp = 13,
    .pc = 15,
    .link = 14,
    .return_column = 14,
    .word_size = 4,
    .alignment = 2,
    .preserved = 0x0ff0,                      // r4 to r11
    .lost_by_call = 0x100f | 1u << 14,        // r0 to r3, r12, lr
    .known_when_stopped = 0x0ff0 | 3u << 13,  // callee-saved registers, sp and lr
    .frame_pointers = 1u << 7 | 1u << 11,
    .most_instructions = 600,
};

// Reads the code that is followed.
class Code final : public CodeView {
public:
    Code(const CodeReader& read, std::uint64_t address)
        : read_(read), middle_(address), thumb_((address & 2) != 0 || !looks_like_arm(address)) {}

    [[nodiscard]] std::optional<CodeEffect> effect_at(std::uint64_t at) const override {
        const std::uint64_t place = at & ~std::uint64_t{3};
        const auto code = word(place);
        if (!code) return {};
        if (!thumb_) return arm_effect(*code);
        if ((at & 2) == 0) return thumb_effect(*code & 0xffff, *code >> 16);
        return thumb_effect(*code >> 16, word(place + 4).value_or(0) & 0xffff);
    }
    [[nodiscard]] std::uint8_t alignment() const { return thumb_ ? 2 : 4; }

private:
    // The top four bits of an ARM instruction are its condition, nearly always "always". The bit below is set only in
    // branches and multi-register transfers. In Thumb code, "always" without that bit is a short branch, and with it
    // half of many long instructions. Other conditions of ARM code come in runs, without Thumb's calls, prologues and
    // epilogues. The code before may be a function in the other state, and constants may follow.
    [[nodiscard]] bool looks_like_arm(std::uint64_t address) const {
        constexpr unsigned sure_behind = 9, sure_before = 10, likely = 10;
        const Conditions behind = conditions(address), before = conditions(address - 4 * words);
        if (behind.always_near >= sure_behind || before.always_near >= sure_before) return true;
        return (behind.repeat >= likely && !behind.like_thumb) || (before.repeat >= likely && !before.like_thumb);
    }

    static constexpr unsigned words = 16, near = 8;
    struct Conditions {
        unsigned always_near = 0;  // of the `near` words next to the address: 2 for each without the bit, 1 with it
        unsigned repeat = 0;       // words with "always" and without the bit, or with the previous word's condition
        bool like_thumb = false;
    };
    [[nodiscard]] Conditions conditions(std::uint64_t from) const {
        constexpr std::uint32_t always = 0xe, always_without = 0x1c;  // in the highest four, and five bits
        Conditions found;
        std::uint32_t last = ~std::uint32_t{0}, last_half = 0;
        for (unsigned i = 0; i < words; ++i) {
            const std::uint32_t code = word(from + 4 * i).value_or(0);
            if (code == 0) continue;  // between functions, or not readable
            const bool is_near = from == middle_ ? i < near : i >= words - near;
            if (code >> 28 == always && is_near) found.always_near += code >> 27 == always_without ? 2 : 1;
            if (code >> 27 == always_without || code >> 28 == last) ++found.repeat;
            last = code >> 28;
            for (const std::uint32_t half : {code & 0xffff, code >> 16}) {
                // bx lr; push and pop with lr and pc; bl and blx
                found.like_thumb |= half == 0x4770 || half >> 8 == 0xb5 || half >> 8 == 0xbd;
                found.like_thumb |= last_half >> 11 == 0x1e && half >> 14 == 3;
                last_half = half;
            }
        }
        return found;
    }

    // `at` is a multiple of 4. Reading the file costs much more than decoding, so a block is read around it. Near the
    // end of the readable range, only the word itself is read.
    [[nodiscard]] std::optional<std::uint32_t> word(std::uint64_t at) const {
        if (at - block_start_ >= block_size_) {
            block_start_ = at & ~std::uint64_t{block_.size() - 1};
            block_size_ = block_.size();
            if (!read_(block_start_, block_)) {
                block_start_ = at;
                block_size_ = 4;
                if (!read_(at, std::span(block_).first(4))) block_size_ = 0;
            }
            if (block_size_ == 0) return {};
        }
        const std::byte* bytes = block_.data() + static_cast<std::size_t>(at - block_start_);
        std::uint32_t value = 0;
        for (std::size_t i = 4; i-- > 0;) value = value << 8 | std::to_integer<std::uint32_t>(bytes[i]);
        return value;
    }

    const CodeReader& read_;
    std::uint64_t middle_;
    mutable std::array<std::byte, 256> block_;  // the first `block_size_` bytes are those at `block_start_`
    mutable std::uint64_t block_start_ = 0;
    mutable std::size_t block_size_ = 0;
    bool thumb_;
};

}  // namespace

std::optional<FrameRow> row_by_arm_code(const CodeReader& read, std::uint64_t address, bool return_address) {
    const Code code(read, address);
    CodeConvention convention = arm_convention;
    convention.alignment = code.alignment();
    return row_by_following(code, convention, address, return_address);
}

}  // namespace flamewire::unwind
