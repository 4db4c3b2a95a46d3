#include "symbol/disassembly/disassembly.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <capstone/capstone.h>
#include <memory>

#include "symbol/disassembly/arm_text.h"
#include "symbol/disassembly/x86_length.h"
#include "symbol/disassembly/x86_text.h"

namespace flamewire::symbol {
namespace {

class Engine {
public:
    static Result<std::unique_ptr<Engine>> open(cs_arch arch, unsigned mode) {
        auto engine = std::unique_ptr<Engine>(new Engine(arch));
        if (cs_open(arch, static_cast<cs_mode>(mode), &engine->handle_) != CS_ERR_OK)
            return fail(ErrorCode::unsupported, "this build of Capstone does not support the machine");
        cs_option(engine->handle_, CS_OPT_DETAIL, CS_OPT_ON);
        if (arch == CS_ARCH_X86) cs_option(engine->handle_, CS_OPT_SYNTAX, CS_OPT_SYNTAX_ATT);
        engine->decoded_ = cs_malloc(engine->handle_);
        if (engine->decoded_ == nullptr) return fail(ErrorCode::too_large, "no memory for a disassembler");
        return engine;
    }
    ~Engine() {
        if (decoded_ != nullptr) cs_free(decoded_, 1);
        if (handle_ != 0) cs_close(&handle_);
    }
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    // The instruction at the front; nullopt if Capstone does not support it.
    std::optional<Instruction> decode(Bytes code, std::uint64_t address) {
        const auto* bytes = reinterpret_cast<const std::uint8_t*>(code.data());
        std::size_t size = code.size();
        if (!cs_disasm_iter(handle_, &bytes, &size, &address, decoded_)) return std::nullopt;
        // Capstone 4 decodes incssp as lfence.
        if (arch_ == CS_ARCH_X86 && decoded_->id == X86_INS_LFENCE && decoded_->bytes[0] == 0xf3) return std::nullopt;
        Instruction out;
        out.address = decoded_->address;
        out.size = decoded_->size;
        out.text = arch_ == CS_ARCH_X86   ? x86_text(handle_, *decoded_)
                   : arch_ == CS_ARCH_ARM ? arm_text(*decoded_)
                                          : aarch64_text(*decoded_);
        out.flow = flow();
        if (out.flow == Flow::jump || out.flow == Flow::branch || out.flow == Flow::call) out.target = target();
        if (arch_ == CS_ARCH_X86) out.reference = reference();
        return out;
    }

private:
    explicit Engine(cs_arch arch) : arch_(arch) {}

    [[nodiscard]] bool in_group(unsigned group) const {
        const cs_detail& detail = *decoded_->detail;
        return std::find(detail.groups, detail.groups + detail.groups_count, group) !=
               detail.groups + detail.groups_count;
    }

    [[nodiscard]] Flow flow() const {
        const cs_detail& detail = *decoded_->detail;
        switch (arch_) {
            case CS_ARCH_X86:
                if (in_group(CS_GRP_RET)) return Flow::leave;
                if (in_group(CS_GRP_CALL)) return Flow::call;
                if (decoded_->id == X86_INS_JMP) return Flow::jump;
                return in_group(CS_GRP_JUMP) ? Flow::branch : Flow::next;
            case CS_ARCH_ARM64:
                switch (decoded_->id) {
                    case ARM64_INS_BL:
                    case ARM64_INS_BLR: return Flow::call;
                    case ARM64_INS_RET: return Flow::leave;
                    case ARM64_INS_BR: return Flow::jump;
                    case ARM64_INS_B: return detail.arm64.cc == ARM64_CC_INVALID ? Flow::jump : Flow::branch;
                    case ARM64_INS_CBZ:
                    case ARM64_INS_CBNZ:
                    case ARM64_INS_TBZ:
                    case ARM64_INS_TBNZ: return Flow::branch;
                    default: return Flow::next;
                }
            default: return arm_flow(detail.arm);
        }
    }

    // Conditional returns and indirect jumps are branches, because they may continue.
    [[nodiscard]] Flow arm_flow(const cs_arm& arm) const {
        const bool always = arm.cc == ARM_CC_AL || arm.cc == ARM_CC_INVALID;
        const auto is = [&](int operand, unsigned reg) {
            return operand < arm.op_count && arm.operands[operand].type == ARM_OP_REG &&
                   static_cast<unsigned>(arm.operands[operand].reg) == reg;
        };
        switch (decoded_->id) {
            case ARM_INS_BL:
            case ARM_INS_BLX: return Flow::call;
            case ARM_INS_B: return always ? Flow::jump : Flow::branch;
            case ARM_INS_CBZ:
            case ARM_INS_CBNZ: return Flow::branch;
            case ARM_INS_TBB:
            case ARM_INS_TBH: return Flow::jump;
            case ARM_INS_BX: return !always ? Flow::branch : is(0, ARM_REG_LR) ? Flow::leave : Flow::jump;
            case ARM_INS_POP:
            case ARM_INS_LDM:
                return arm.op_count > 0 && is(arm.op_count - 1, ARM_REG_PC) ? (always ? Flow::leave : Flow::branch)
                                                                            : Flow::next;
            case ARM_INS_MOV:
            case ARM_INS_LDR:
                if (!is(0, ARM_REG_PC)) return Flow::next;
                return !always ? Flow::branch : is(1, ARM_REG_LR) ? Flow::leave : Flow::jump;
            default: return Flow::next;
        }
    }

    // The last operand if it is an immediate, which Capstone has converted to an address.
    [[nodiscard]] std::optional<std::uint64_t> target() const {
        const cs_detail& detail = *decoded_->detail;
        switch (arch_) {
            case CS_ARCH_X86:
                if (detail.x86.op_count == 1 && detail.x86.operands[0].type == X86_OP_IMM)
                    return static_cast<std::uint64_t>(detail.x86.operands[0].imm);
                return std::nullopt;
            case CS_ARCH_ARM64: {
                const auto& operands = detail.arm64.operands;
                const int last = detail.arm64.op_count - 1;
                if (last < 0 || operands[last].type != ARM64_OP_IMM) return std::nullopt;
                return static_cast<std::uint64_t>(operands[last].imm);
            }
            default: {
                const auto& operands = detail.arm.operands;
                const int last = detail.arm.op_count - 1;
                if (last < 0 || operands[last].type != ARM_OP_IMM) return std::nullopt;
                return static_cast<std::uint32_t>(operands[last].imm) & ~std::uint32_t{1};
            }
        }
    }

    [[nodiscard]] std::optional<std::uint64_t> reference() const {
        const cs_x86& x86 = decoded_->detail->x86;
        for (int i = 0; i < x86.op_count; ++i)
            if (x86.operands[i].type == X86_OP_MEM && x86.operands[i].mem.base == X86_REG_RIP)
                return decoded_->address + decoded_->size + static_cast<std::uint64_t>(x86.operands[i].mem.disp);
        return std::nullopt;
    }

    cs_arch arch_;
    csh handle_ = 0;
    cs_insn* decoded_ = nullptr;
};

std::uint32_t word_at(Bytes bytes, std::size_t size, bool big_endian) {
    std::uint32_t word = 0;
    for (std::size_t i = 0; i < size; ++i)
        word = word << 8 | std::to_integer<std::uint32_t>(bytes[big_endian ? i : size - 1 - i]);
    return word;
}

Instruction not_code(std::uint64_t address, std::size_t size) {
    Instruction out;
    out.address = address;
    out.size = static_cast<std::uint32_t>(size);
    out.known = false;
    return out;
}

// A piece of data up to a multiple of its size, split like objdump does.
Instruction data_item(Bytes rest, std::uint64_t address, bool big_endian) {
    const std::size_t size = address % 4 == 0 && rest.size() >= 4 ? 4 : address % 2 == 0 && rest.size() >= 2 ? 2 : 1;
    Instruction out = not_code(address, size);
    const std::string_view word = size == 4 ? ".word" : size == 2 ? ".short" : ".byte";
    out.text = fmt::format("{} 0x{:0{}x}", word, word_at(rest, size, big_endian), size * 2);
    return out;
}

class Disassembler {
public:
    explicit Disassembler(const CodeBytes& code) : code_(code) {}

    Result<std::vector<Instruction>> run(std::size_t most) {
        std::vector<Instruction> out;
        CodeKind kind = code_.begins;
        std::size_t mark = 0;
        for (std::size_t at = 0; at < code_.bytes.size() && out.size() < most;) {
            const std::uint64_t address = code_.address + at;
            for (; mark < code_.marks.size() && code_.marks[mark].address <= address; ++mark)
                kind = code_.marks[mark].kind;
            std::size_t end = code_.bytes.size();
            if (mark < code_.marks.size())
                end = static_cast<std::size_t>(std::min<std::uint64_t>(end, code_.marks[mark].address - code_.address));
            const Bytes rest = code_.bytes.subspan(at, end - at);
            out.push_back(TRY(item(rest, address, kind)));
            at += out.back().size;
        }
        return out;
    }

private:
    Result<Instruction> item(Bytes rest, std::uint64_t address, CodeKind kind) {
        if (kind == CodeKind::data) return data_item(rest, address, code_.big_endian);
        Engine& decoder = *TRY(engine(kind));
        if (auto known = decoder.decode(rest, address); known && known->size != 0 && known->size <= rest.size())
            return std::move(*known);
        return unknown(rest, address, kind);
    }

    [[nodiscard]] Instruction unknown(Bytes rest, std::uint64_t address, CodeKind kind) const {
        Instruction out = not_code(address, 1);
        if (code_.machine == EM_X86_64) {
            const std::size_t length = x86_length(rest);
            out.size = static_cast<std::uint32_t>(std::max<std::size_t>(length, 1));
            out.text = ".byte ";
            for (std::size_t i = 0; i < out.size; ++i)
                out.text += fmt::format("{}0x{:02x}", i == 0 ? "" : ",", std::to_integer<unsigned>(rest[i]));
            return out;
        }
        if (kind == CodeKind::thumb) {
            if (rest.size() < 2) return data_item(rest, address, code_.big_endian);
            // 0b11101, 0b11110 and 0b11111 start an instruction of two halfwords.
            const std::uint32_t first = word_at(rest, 2, false);
            const bool wide = first >= 0xe800 && rest.size() >= 4;
            out.size = wide ? 4 : 2;
            out.text = wide ? fmt::format(".inst.w 0x{:04x}{:04x}", first, word_at(rest.subspan(2), 2, false))
                            : fmt::format(".inst.n 0x{:04x}", first);
            return out;
        }
        if (rest.size() < 4) return data_item(rest, address, code_.big_endian);
        out.size = 4;
        if (code_.machine == EM_AARCH64) out.text = aarch64_atomic(word_at(rest, 4, false));
        out.known = !out.text.empty();
        if (!out.known) out.text = fmt::format(".inst 0x{:08x}", word_at(rest, 4, false));
        return out;
    }

    Result<Engine*> engine(CodeKind kind) {
        std::unique_ptr<Engine>& slot = kind == CodeKind::thumb ? thumb_ : usual_;
        if (slot) return slot.get();
        switch (code_.machine) {
            case EM_X86_64: slot = TRY(Engine::open(CS_ARCH_X86, CS_MODE_64)); break;
            case EM_AARCH64: slot = TRY(Engine::open(CS_ARCH_ARM64, 0)); break;
            case EM_ARM:
                slot = TRY(Engine::open(
                    CS_ARCH_ARM, static_cast<unsigned>(CS_MODE_V8) |
                                     static_cast<unsigned>(kind == CodeKind::thumb ? CS_MODE_THUMB : CS_MODE_ARM)));
                break;
            default:
                return fail(ErrorCode::invalid,
                            "instructions are shown for x86-64, AArch64 and 32-bit Arm, not for this machine");
        }
        return slot.get();
    }

    const CodeBytes& code_;
    std::unique_ptr<Engine> usual_, thumb_;
};

}  // namespace

bool can_disassemble(std::uint16_t machine) {
    return machine == EM_X86_64 || machine == EM_AARCH64 || machine == EM_ARM;
}

Result<std::vector<Instruction>> disassemble(const CodeBytes& code, std::size_t most) {
    if (!can_disassemble(code.machine))
        return fail(ErrorCode::invalid,
                    "instructions are shown for x86-64, AArch64 and 32-bit Arm, not for this machine");
    return Disassembler(code).run(most);
}

}  // namespace flamewire::symbol
