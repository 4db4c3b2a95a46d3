#include "symbol/disassembly/arm_text.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <string_view>

namespace flamewire::symbol {
namespace {

std::string joined(std::string_view mnemonic, std::string_view operands) {
    return operands.empty() ? std::string(mnemonic) : fmt::format("{} {}", mnemonic, operands);
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::string general_register(std::uint32_t number, bool wide, bool stack) {
    if (number == 31) return stack ? "sp" : wide ? "xzr" : "wzr";
    return fmt::format("{}{}", wide ? 'x' : 'w', number);
}

}  // namespace

std::string aarch64_text(const cs_insn& decoded) {
    const cs_arm64& arm = decoded.detail->arm64;
    const std::string_view operands = decoded.op_str;
    const std::string_view target = operands.substr(0, operands.find(','));
    const bool shifted = arm.op_count == 2 && arm.operands[1].shift.type != ARM64_SFT_INVALID;
    if (decoded.id == ARM64_INS_MOVZ && arm.op_count == 2 && !shifted) return joined("mov", operands);
    if (arm.op_count == 2 && (decoded.id == ARM64_INS_MOVZ || decoded.id == ARM64_INS_MOVN)) {
        auto value = static_cast<std::uint64_t>(arm.operands[1].imm) << (shifted ? arm.operands[1].shift.value : 0u);
        if (decoded.id == ARM64_INS_MOVZ && value == 0) return joined(decoded.mnemonic, operands);
        if (decoded.id == ARM64_INS_MOVN) value = ~value;
        if (target.starts_with('w')) value &= 0xffffffff;
        return fmt::format("mov {}, #{:#x}", target, value);
    }
    const bool of_zero = arm.op_count == 3 && arm.operands[1].type == ARM64_OP_REG &&
                         (arm.operands[1].reg == ARM64_REG_XZR || arm.operands[1].reg == ARM64_REG_WZR);
    if (decoded.id == ARM64_INS_ORR && of_zero && arm.operands[2].type == ARM64_OP_IMM)
        return fmt::format("mov {}, {}", target, operands.substr(operands.rfind('#')));
    return joined(decoded.mnemonic, operands);
}

std::string arm_text(const cs_insn& decoded) {
    std::string operands = decoded.op_str;
    for (std::size_t at = 0; (at = operands.find("sb", at)) != std::string::npos; at += 2)
        if ((at == 0 || !is_word(operands[at - 1])) && (at + 2 == operands.size() || !is_word(operands[at + 2])))
            operands.replace(at, 2, "r9");
    return joined(decoded.mnemonic, operands);
}

std::string aarch64_atomic(std::uint32_t word) {
    static constexpr std::array<std::string_view, 4> sizes = {"b", "h", "", ""};
    static constexpr std::array<std::string_view, 8> names = {"add",  "clr",  "eor",  "set",
                                                              "smax", "smin", "umax", "umin"};
    const std::uint32_t size = word >> 30, source = word >> 16 & 31, base = word >> 5 & 31, target = word & 31;
    const bool wide = size == 3;
    const auto text = [&](std::string_view name, bool acquire, bool release, bool loads) {
        std::string out = fmt::format("{}{}{}{} {}, ", name, acquire ? "a" : "", release ? "l" : "", sizes[size],
                                      general_register(source, wide, false));
        if (loads) out += general_register(target, wide, false) + ", ";
        return out + fmt::format("[{}]", general_register(base, true, true));
    };
    if ((word & 0x3fa07c00) == 0x08a07c00) return text("cas", (word >> 22 & 1) != 0, (word >> 15 & 1) != 0, true);
    if ((word & 0x3f200c00) != 0x38200000) return {};
    const bool acquire = (word >> 23 & 1) != 0, release = (word >> 22 & 1) != 0;
    const std::uint32_t operation = word >> 12 & 7;
    if ((word >> 15 & 1) != 0) return operation == 0 ? text("swp", acquire, release, true) : std::string();
    // Without a destination register and without acquire, it is a store.
    if (target == 31 && !acquire) return text(fmt::format("st{}", names[operation]), false, release, false);
    return text(fmt::format("ld{}", names[operation]), acquire, release, true);
}

}  // namespace flamewire::symbol
