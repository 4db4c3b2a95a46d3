#include "symbol/disassembly/x86_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

namespace flamewire::symbol {
namespace {

bool has_register(const cs_x86& x86) {
    return std::any_of(x86.operands, x86.operands + x86.op_count,
                       [](const cs_x86_op& operand) { return operand.type == X86_OP_REG; });
}

// Removes the size suffix ("mov" for "movq") if an operand is a register. push, pop, call and similar have only one
// size.
std::string_view without_suffix(std::string_view mnemonic, std::string_view base, const cs_insn& decoded) {
    if (mnemonic.size() != base.size() + 1 || !mnemonic.starts_with(base)) return mnemonic;
    if (std::string_view("bwlq").find(mnemonic.back()) == std::string_view::npos) return mnemonic;
    switch (decoded.id) {
        case X86_INS_CALL:
        case X86_INS_RET:
        case X86_INS_JMP:
        case X86_INS_LEAVE:
        case X86_INS_PUSH:
        case X86_INS_POP: return base;
        default: return has_register(decoded.detail->x86) ? base : mnemonic;
    }
}

// An immediate with the width of its operand: -1 with 32 bits is 0xffffffff.
std::string immediate(const cs_x86& x86, std::string_view digits, bool negative, bool hexadecimal) {
    std::uint64_t value = 0;
    for (const char c : digits)
        value =
            value * (hexadecimal ? 16 : 10) + static_cast<std::uint64_t>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    if (negative) value = ~value + 1;
    unsigned size = 8;
    for (int i = 0; i < x86.op_count; ++i)
        if (x86.operands[i].type == X86_OP_IMM) size = x86.operands[i].size;
    for (int i = 0; i < x86.op_count; ++i)
        if (x86.operands[i].type != X86_OP_IMM && x86.op_count > 1 && negative) size = x86.operands[i].size;
    if (size > 0 && size < 8) value &= (std::uint64_t{1} << 8 * size) - 1;
    return fmt::format("{:#x}", value);
}

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Makes numbers hexadecimal, removes spaces, adds a missing scale to an index, and shows a displacement of 0 if the
// bytes contain one.
std::string operands(const cs_x86& x86, std::string_view text) {
    const bool shows_zero = x86.encoding.disp_size != 0 && x86.disp == 0;
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
        const char c = text[at];
        if (c == ' ') {
            ++at;
        } else if (c == '%') {
            do out += text[at++];
            while (at < text.size() && is_name(text[at]));
        } else if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
            const bool hexadecimal = text.substr(at).starts_with("0x");
            std::size_t end = hexadecimal ? at + 2 : at;
            const std::size_t first = end;
            while (end < text.size() && std::isxdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
            const std::string_view digits = text.substr(first, end - first);
            const bool negative = out.ends_with('-'), is_immediate = out.ends_with('$') || out.ends_with("$-");
            if (is_immediate) {
                if (negative) out.pop_back();
                out += immediate(x86, digits, negative, hexadecimal);
            } else if ((out.ends_with(',') && text.substr(end).starts_with(')')) || out.ends_with("%st(")) {
                out += digits;  // a scale, or a register of the FPU
            } else if (hexadecimal) {
                out += text.substr(at, end - at);
            } else {
                out += fmt::format("{:#x}", std::stoul(std::string(digits)));
            }
            at = end;
        } else {
            if (c == '(' && shows_zero && (out.empty() || out.back() == ',' || out.back() == '*' || out.back() == ':'))
                out += "0x0";
            // (%rax, %rbx) -> (%rax,%rbx,1)
            if (c == ')' && std::count(out.begin() + static_cast<std::ptrdiff_t>(out.rfind('(')), out.end(), ',') == 1)
                out += ",1";
            out += c;
            ++at;
        }
    }
    return out;
}

enum class StringOperation : std::uint8_t { none, memory, beside_register };

StringOperation string_operation(unsigned id) {
    switch (id) {
        case X86_INS_STOSB:
        case X86_INS_STOSW:
        case X86_INS_STOSD:
        case X86_INS_STOSQ:
        case X86_INS_LODSB:
        case X86_INS_LODSW:
        case X86_INS_LODSD:
        case X86_INS_LODSQ:
        case X86_INS_SCASB:
        case X86_INS_SCASW:
        case X86_INS_SCASD:
        case X86_INS_SCASQ: return StringOperation::beside_register;
        case X86_INS_MOVSB:
        case X86_INS_MOVSW:
        case X86_INS_MOVSQ:
        case X86_INS_CMPSB:
        case X86_INS_CMPSW:
        case X86_INS_CMPSQ: return StringOperation::memory;
        default: return StringOperation::none;  // movsd and cmpsd are also floating-point instructions
    }
}

void name_segment(std::string& list, std::string_view operand, std::string_view segment) {
    const std::size_t at = list.find(operand);
    if (at != std::string::npos && (at == 0 || list[at - 1] == ',')) list.insert(at, segment);
}

}  // namespace

std::string x86_text(csh engine, const cs_insn& decoded) {
    // Prefixes are before the mnemonic.
    std::string_view prefix, mnemonic = decoded.mnemonic;
    if (const std::size_t space = mnemonic.rfind(' '); space != std::string_view::npos) {
        prefix = mnemonic.substr(0, space + 1);
        mnemonic.remove_prefix(space + 1);
    }
    const char* base = cs_insn_name(engine, decoded.id);
    if (base != nullptr) mnemonic = without_suffix(mnemonic, base, decoded);
    const cs_x86& x86 = decoded.detail->x86;
    if (mnemonic == "movd" && (x86.rex & 8) != 0) mnemonic = "movq";
    std::string list = operands(x86, decoded.op_str);
    // A shift or rotate by one, without an immediate in the bytes.
    if ((x86.opcode[0] & 0xfe) == 0xd0 && list.starts_with("$0x1,")) list.erase(0, 5);
    if (decoded.id == X86_INS_NOP && decoded.size == 2 && list.empty()) return "xchg %ax,%ax";
    if (decoded.id == X86_INS_NOP && list.starts_with("%cs:")) {
        list.erase(0, 4);
        prefix = "cs ";
    }
    if (const StringOperation kind = string_operation(decoded.id); kind != StringOperation::none) {
        if (kind == StringOperation::beside_register) mnemonic.remove_suffix(1);
        name_segment(list, "(%rdi)", "%es:");
        name_segment(list, "(%rsi)", "%ds:");
    }
    const bool indirect = list.starts_with('*');
    if (indirect && x86.prefix[1] == X86_PREFIX_DS) prefix = "notrack ";
    return fmt::format("{}{}{}{}", prefix, mnemonic, list.empty() ? "" : " ", list);
}

}  // namespace flamewire::symbol
