#include "shadow_stack.h"

#include <array>

namespace flamewire::steps {
namespace {

using unwind::Arch;
using unwind::Registers;

constexpr std::uint64_t beyond_start = 256;  // argc and argv are read as well
// The part of a signal frame that is needed to leave it: the registers, for every architecture.
constexpr std::uint64_t signal_frame_size = 1024;

// The return address of a call at `pc` according to the link register, for ARM. 0: it is not a call.
std::uint64_t arm_call_returns_to(Target& target, std::uint64_t pc, std::uint64_t lr) {
    const auto first = target.read_value<std::uint16_t>(pc), second = target.read_value<std::uint16_t>(pc + 2);
    if (!first || !second) return 0;
    const std::uint32_t word = std::uint32_t{*second} << 16 | *first;
    if (lr == pc + 2 + 1 && (*first & 0xff87) == 0x4780) return pc + 2;                                  // blx register
    if (lr == pc + 4 + 1 && (*first & 0xf800) == 0xf000 && (*second & 0xc000) == 0xc000) return pc + 4;  // bl, blx
    const bool arm_call =
        (word >> 28 != 15 && (word >> 24 & 15) == 11) || word >> 25 == 0x7d || (word & 0x0ffffff0) == 0x012fff30;
    return lr == pc + 4 && arm_call ? pc + 4 : 0;
}

}  // namespace

ShadowStack::ShadowStack(const Registers& registers) : arch_(registers.arch()) {
    levels_.back().stack_end = registers.sp() + beyond_start;
}

ShadowStack::Kind ShadowStack::kind_x86(Target& target, const Registers& registers) {
    constexpr std::uint8_t rax = 0;
    std::array<std::uint8_t, 16> code{};
    const std::size_t size = target.read(registers.pc(), std::as_writable_bytes(std::span(code)));
    std::size_t at = 0;
    const auto is_prefix = [](std::uint8_t byte) {
        return byte == 0x66 || byte == 0x67 || byte == 0xf2 || byte == 0xf3 || byte == 0x2e || byte == 0x3e ||
               byte == 0x64 || byte == 0x65 || (byte & 0xf0) == 0x40;
    };
    while (at + 2 < size && is_prefix(code[at])) ++at;
    const std::uint8_t opcode = code[at], operation = code[at + 1] >> 3 & 7;
    if (opcode == 0xe8 || (opcode == 0xff && operation == 2)) return Kind::call;
    if (opcode == 0xc3 || opcode == 0xc2) return Kind::ret;
    if (opcode == 0xff && operation == 4) return Kind::jump;
    constexpr std::uint64_t rt_sigreturn = 15;
    if (opcode == 0x0f && code[at + 1] == 0x05 && registers.get(rax) == rt_sigreturn) return Kind::sigreturn;
    return Kind::other;
}

ShadowStack::Kind ShadowStack::kind_aarch64(Target& target, const Registers& registers) {
    const std::uint32_t code = target.read_value<std::uint32_t>(registers.pc()).value_or(0);
    if (code >> 26 == 0x25 || (code & 0xfffffc1f) == 0xd63f0000) return Kind::call;                 // bl, blr
    if ((code & 0xfffff800) == 0xd73f0800 || (code & 0xfffff81f) == 0xd63f081f) return Kind::call;  // blraa, blraaz…
    constexpr std::uint64_t rt_sigreturn = 139;
    if (code == 0xd4000001 && registers.get(8) == rt_sigreturn) return Kind::sigreturn;
    return Kind::other;
}

ShadowStack::Kind ShadowStack::kind_arm(Target& target, const Registers& registers) {
    const std::uint32_t code = target.read_value<std::uint32_t>(registers.pc()).value_or(0);
    const std::uint64_t number = registers.get(7);
    const bool is_svc = (code & 0xffff) == 0xdf00 || code >> 24 == 0xef;
    return is_svc && (number == 119 || number == 173) ? Kind::sigreturn : Kind::call;  // lr decides afterwards
}

void ShadowStack::before(Target& target, const Registers& registers) {
    pc_ = registers.pc();
    sp_ = registers.sp();
    switch (arch_) {
        case Arch::x86_64: kind_ = kind_x86(target, registers); break;
        case Arch::aarch64: kind_ = kind_aarch64(target, registers); break;
        default: kind_ = kind_arm(target, registers);
    }
}

// The return address of the call is in the link register, or on x86-64 in the word that the call pushed.
bool ShadowStack::called(Target& target, const Registers& registers) {
    if (kind_ != Kind::call) return false;
    Call call{.return_to = 0, .caller_sp = sp_};
    if (arch_ == Arch::x86_64) {
        if (registers.sp() != sp_ - 8) return false;
        call.return_to = target.read_value<std::uint64_t>(registers.sp()).value_or(0);
    } else if (arch_ == Arch::aarch64) {
        if (registers.get(30) != pc_ + 4) return false;
        call.return_to = pc_ + 4;
    } else {
        if (registers.pc() == pc_ + 2 || registers.pc() == pc_ + 4) return false;
        call.return_to = arm_call_returns_to(target, pc_, registers.get(14));
        if (call.return_to == 0) return false;
    }
    levels_.back().calls.push_back(call);
    return true;
}

// The address of the kernel's frame. The emulator stops after the handler's first instruction, which may have moved the stack
// pointer, so search for the interrupted pc in the frame.
std::uint64_t ShadowStack::signal_frame(Target& target, const Registers& registers) const {
    if (arch_ == Arch::x86_64) return registers.sp();
    const std::uint64_t saved_pc = arch_ == Arch::arm ? 32 + 15 * 4 : 128 + 176 + 8 + 32 * 8;
    constexpr std::uint64_t most = 512;
    for (std::uint64_t frame = registers.sp(); frame < registers.sp() + most; frame += 4)
        if ((target.read_value<std::uint64_t>(frame + saved_pc).value_or(0) &
             (arch_ == Arch::arm ? 0xffffffff : ~0ull)) == pc_)
            return frame;
    return registers.sp();
}

// The kernel calls the handler, which returns to the trampoline.
void ShadowStack::enter_handler(Target& target, const Registers& registers) {
    const std::uint64_t frame = signal_frame(target, registers);
    Level level{.calls = {}, .stack_end = frame + signal_frame_size, .interrupted_pc = pc_, .interrupted_sp = sp_};
    Call call{.return_to = 0, .caller_sp = frame};
    if (arch_ == Arch::x86_64) {
        call.return_to = target.read_value<std::uint64_t>(registers.sp()).value_or(0);
        call.caller_sp += 8;
    } else {
        call.return_to = registers.get(arch_ == Arch::arm ? 14 : 30);
        // Without the Thumb bit, and without a signature, which the handler's first instruction may have added.
        call.return_to &= arch_ == Arch::arm ? ~std::uint64_t{1} : (std::uint64_t{1} << 48) - 1;
    }
    level.calls.push_back(call);
    levels_.push_back(level);
}

// Drops the calls whose frames are below the stack pointer.
void ShadowStack::leave(std::uint64_t sp, bool equal_too) {
    std::vector<Call>& calls = levels_.back().calls;
    while (!calls.empty() && (calls.back().caller_sp < sp || (equal_too && calls.back().caller_sp == sp))) {
        calls.pop_back();
        left_ = true;
    }
}

void ShadowStack::after_x86(std::uint64_t sp) {
    // The slot of a return address is just below the caller's stack pointer. Beyond it, the call is over.
    leave(sp, true);
    if (kind_ == Kind::ret || kind_ == Kind::jump)
        unsettled_ = false;
    else if (left_)
        unsettled_ = true;
}

void ShadowStack::after_risc(std::uint64_t pc, std::uint64_t sp) {
    std::vector<Call>& calls = levels_.back().calls;
    if (!calls.empty() && pc == calls.back().return_to && sp == calls.back().caller_sp) {
        calls.pop_back();
        unsettled_ = false;
        return;
    }
    leave(sp, false);
    unsettled_ |= left_;
    constexpr std::uint64_t longest_instruction = 4;
    if (unsettled_ && pc - pc_ > longest_instruction) {  // landed: the callees of the landing function are over
        leave(sp, true);
        unsettled_ = false;
    }
}

void ShadowStack::after(Target& target, const Registers& registers, Event event) {
    left_ = false;
    if (event == Event::handler) return enter_handler(target, registers);
    if (registers.pc() == pc_ && registers.sp() == sp_) return;  // a signal arrived before the instruction ran
    if (kind_ == Kind::sigreturn && levels_.size() > 1) {
        levels_.pop_back();
        return;
    }
    if (called(target, registers)) return;
    if (arch_ == Arch::x86_64)
        after_x86(registers.sp());
    else
        after_risc(registers.pc(), registers.sp());
}

std::vector<TrueFrame> ShadowStack::frames(const Registers& registers) const {
    std::vector<TrueFrame> frames{{.pc = registers.pc(), .sp = registers.sp(), .return_address = false}};
    for (auto level = levels_.rbegin(); level != levels_.rend(); ++level) {
        for (auto call = level->calls.rbegin(); call != level->calls.rend(); ++call)
            frames.push_back({.pc = call->return_to, .sp = call->caller_sp, .return_address = true});
        if (level + 1 != levels_.rend())
            frames.push_back({.pc = level->interrupted_pc, .sp = level->interrupted_sp, .return_address = false});
    }
    return frames;
}

std::vector<StackRange> ShadowStack::stacks(const Registers& registers) const {
    std::vector<StackRange> stacks;
    std::uint64_t sp = registers.sp();
    for (auto level = levels_.rbegin(); level != levels_.rend(); ++level) {
        stacks.push_back({.start = sp, .end = level->stack_end});
        sp = level->interrupted_sp;
    }
    return stacks;
}

}  // namespace flamewire::steps
