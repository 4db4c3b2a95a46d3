// 32-bit ARM, ARM and Thumb code. Source: "Procedure Call Standard for the Arm Architecture" (AAPCS32), Linux
// arch/arm/kernel/{signal.c,sigreturn_codes.S,perf_callchain.c}, arch/arm/include/uapi/asm/sigcontext.h; Arm ARM for
// the encodings.
//
// In this library a pc never has a Thumb bit: code that takes an address from lr, a saved pc or a signal frame clears
// bit 0. A return address is then looked up at address - 1, which lies in the call instruction in both states.
#include <array>

#include "unwind/arch/arch.h"
#include "unwind/code/arm_return.h"

namespace flamewire::unwind {
namespace {

constexpr std::uint8_t thumb_fp = 7, syscall_register = 7, fp = 11, sp = 13, lr = 14, pc = 15;
constexpr std::uint32_t sigreturn = 119, rt_sigreturn = 173;

std::uint64_t without_thumb_bit(std::uint64_t address) { return address & ~std::uint64_t{1}; }

// --- frame pointers ---

// The kernel's walk assumes the APCS frame: "push {fp, ip, lr, pc}; sub fp, ip, #4".
bool is_apcs_row(const FrameRow& row) {
    const auto at = [&](std::uint8_t number, std::int64_t offset) {
        const RegisterRule& rule = row.registers[number];
        return rule.kind == RegisterRule::Kind::at_cfa && rule.offset == offset;
    };
    return !row.cfa_is_expression && row.cfa_register == fp && row.cfa_offset == 4 && row.return_column == lr &&
           at(lr, -8) && at(fp, -16);
}

// Target of the call instruction that ends at `address` (with its Thumb bit), without a Thumb bit. 0 if the target is
// in a register. nullopt if no call ends there or it cannot be read.
std::optional<std::uint64_t> call_target(std::uint64_t address, const MemoryReader& read) {
    const auto relative = [](std::uint64_t from, std::uint32_t offset, unsigned bits) {
        const std::uint32_t sign = 1u << (bits - 1);
        const std::uint32_t wrapped = static_cast<std::uint32_t>(from) + ((offset ^ sign) - sign);
        return std::uint64_t{wrapped};
    };
    if ((address & 1) == 0) {
        const auto word = (address & 3) == 0 ? read(address - 4, 4) : std::nullopt;
        if (!word) return {};
        const auto code = static_cast<std::uint32_t>(*word);
        const bool to_thumb = code >> 25 == 0x7d;
        if (to_thumb || (code >> 28 != 0xf && (code >> 24 & 0xf) == 0xb))  // blx, bl
            return relative(address + 4, (code & 0xffffff) << 2 | (to_thumb ? code >> 23 & 2 : 0), 26);
        if ((code & 0x0ffffff0) == 0x012fff30) return 0;  // blx register
        return {};
    }
    const std::uint64_t end = without_thumb_bit(address);
    const auto last = read(end - 2, 2);
    if (!last) return {};
    if ((*last & 0xff87) == 0x4780) return 0;  // blx register
    const auto first = read(end - 4, 2);
    if (!first || (*first & 0xf800) != 0xf000 || (*last & 0xc000) != 0xc000) return {};
    const auto high = static_cast<std::uint32_t>(*first), low = static_cast<std::uint32_t>(*last);
    const std::uint32_t sign = high >> 10 & 1, i1 = (low >> 13 & 1) ^ sign ^ 1, i2 = (low >> 11 & 1) ^ sign ^ 1;
    const std::uint32_t offset = sign << 24 | i1 << 23 | i2 << 22 | (high & 0x3ff) << 12 | (low & 0x7ff) << 1;
    const bool to_arm = (low & 0x1000) == 0;  // blx
    return relative(to_arm ? end & ~std::uint64_t{3} : end, offset, 25);
}

bool follows_call(std::uint64_t address, const MemoryReader& read) { return call_target(address, read).has_value(); }

// Longer than nearly every function. Only the target of a direct call shows that the call has not returned before.
constexpr std::uint64_t longest_function = 16 * 1024;
bool calls(std::uint64_t return_address, std::uint64_t code, const MemoryReader& read) {
    const auto target = call_target(return_address, read);
    return target && *target != 0 && code - *target < longest_function;
}

// Three layouts are in use. Offsets of the caller's frame pointer, return address and sp, from the frame pointer.
struct Layout {
    std::int8_t saved_fp, saved_lr, caller_sp;
};
constexpr Layout apcs{.saved_fp = -12, .saved_lr = -4, .caller_sp = 4};    // gcc -mapcs-frame
constexpr Layout pair{.saved_fp = 0, .saved_lr = 4, .caller_sp = 8};       // clang, r11 or r7: points to the saved fp
constexpr Layout gcc_pair{.saved_fp = -4, .saved_lr = 0, .caller_sp = 4};  // gcc -marm: points to the saved lr

// nullopt unless everything is consistent: nothing marks a register as a frame pointer, and any function may use it for
// something else. (gcc's r7 in Thumb code points to the locals, so it never forms a chain.)
std::optional<Registers> by_layout(const Registers& registers, std::uint8_t number, const Layout& layout,
                                   const MemoryReader& read) {
    if (!registers.has(number) || !registers.has(sp)) return {};
    const std::uint64_t frame = registers.get(number);
    if (frame < registers.sp() || frame % 4 != 0 || frame < 12) return {};
    const auto add = [frame](std::int8_t offset) {
        return static_cast<std::uint64_t>(static_cast<std::int64_t>(frame) + offset);
    };
    if (add(layout.saved_fp) < registers.sp()) return {};
    const auto caller_fp = read(add(layout.saved_fp), 4);
    const auto return_to = read(add(layout.saved_lr), 4);
    if (!caller_fp || !return_to) return {};
    // Must point outwards. In the outermost function of a chain, the register can be 0.
    if (*caller_fp != 0 && (*caller_fp % 4 != 0 || *caller_fp < add(layout.caller_sp))) return {};
    if (!follows_call(*return_to, read)) return {};

    std::uint64_t caller_sp = add(layout.caller_sp);
    if (layout.saved_fp == apcs.saved_fp) {
        const auto saved_sp = read(frame - 8, 4);  // higher by a variadic function's register arguments
        if (!saved_sp || *saved_sp < caller_sp || *saved_sp > caller_sp + 16 || *saved_sp % 4 != 0) return {};
        caller_sp = *saved_sp;
    }
    Registers caller(Arch::arm);
    caller.set(number, *caller_fp);
    caller.set(sp, caller_sp);
    caller.set(pc, without_thumb_bit(*return_to));
    return caller;
}

std::optional<Registers> by_frame_pointer(const Registers& registers, const MemoryReader& read) {
    for (const Layout& layout : {apcs, pair, gcc_pair})
        if (auto caller = by_layout(registers, fp, layout, read)) return caller;
    return by_layout(registers, thumb_fp, pair, read);
}

// --- signal frames ---

std::uint32_t half_at(std::span<const std::byte> code, std::size_t at) {
    return code.size() < at + 2
               ? 0
               : std::to_integer<std::uint32_t>(code[at]) | std::to_integer<std::uint32_t>(code[at + 1]) << 8;
}
std::uint32_t word_at(std::span<const std::byte> code, std::size_t at) {
    return half_at(code, at) | half_at(code, at + 2) << 16;
}

// The number of the system call that the code at pc makes: "mov r7, #N; svc 0" of libc, the kernel or the vDSO, in ARM
// or Thumb code; a lone "svc" with the number already in `r7`; or the old "svc 0x900000 + N". 0: none.
std::uint32_t system_call(std::span<const std::byte> code, std::uint32_t r7) {
    const auto svc_at = [&](std::size_t at, std::uint32_t number) -> std::uint32_t {
        const std::uint32_t word = word_at(code, at);
        if (word == 0xef000000 || half_at(code, at) == 0xdf00) return number;
        return word >> 20 == 0xef9 ? word & 0xfffff : 0;
    };
    const std::uint32_t word = word_at(code, 0), half = half_at(code, 0);
    if ((word & 0xfffff000) == 0xe3a07000) return svc_at(4, word & 0xff);        // mov r7, #N
    if ((word & 0xff00ffff) == 0x0700f04f) return svc_at(4, word >> 16 & 0xff);  // mov.w r7, #N
    if (half >> 8 == 0x27) return svc_at(2, half & 0xff);                        // movs r7, #N
    return svc_at(0, r7);
}

// The size of one instruction of a linker's stub, which uses only ip. 0: something else. `leaves`: it is the last.
std::size_t stub_instruction(std::span<const std::byte> code, std::size_t at, bool& leaves) {
    const std::uint32_t word = word_at(code, at), half = half_at(code, at);
    leaves = word == 0xe12fff1c || word == 0xe51ff004 ||  // bx ip; ldr pc, [pc, #-4]
             (word & 0xffdff000) == 0xe59cf000 ||         // ldr pc, [ip, #N], with write-back or without
             word == 0xf000f8dc || half == 0x4760;        // in Thumb: ldr.w pc, [ip]; bx ip
    if (leaves) return 4;
    if ((word & 0xffe0f000) == 0xe280c000 || word == 0xe08cc00f || word == 0xe08fc00c) return 4;  // add ip
    if ((word & 0xffb0f000) == 0xe300c000 || (word & 0x0f00fb70) == 0x0c00f240) return 4;  // movw, movt ip; in Thumb
    if ((word & 0xfffff000) == 0xe59fc000) return 4;                                       // ldr ip, [pc, #N]
    return half == 0x44fc ? 2 : 0;                                                         // in Thumb: add ip, pc
}

bool is_stub(std::span<const std::byte>, std::span<const std::byte> code) {
    constexpr std::uint32_t bx_pc = 0x4778;  // from a Thumb caller; the stub continues in ARM code
    std::size_t at = half_at(code, 0) == bx_pc ? 4 : 0;
    while (at < code.size()) {
        bool leaves = false;
        const std::size_t size = stub_instruction(code, at, leaves);
        if (leaves || size == 0) return leaves;
        at += size;
    }
    return false;
}

// System call 1 is exit, which ends the thread, not the process.
bool ends_thread(std::span<const std::byte> code) {
    constexpr std::uint32_t exit_thread = 1;
    return system_call(code, 0) == exit_thread;
}

bool returns_from_signal(std::uint32_t number) { return number == sigreturn || number == rt_sigreturn; }

bool is_signal_return(std::span<const std::byte> code) { return returns_from_signal(system_call(code, 0)); }

// Address of the saved registers r0 to r15 in the signal frame at `frame`.
std::optional<std::uint64_t> saved_registers(std::uint64_t frame, bool with_siginfo, const MemoryReader& read) {
    constexpr std::uint64_t siginfo = 128, context = 20, first_register = 12;  // siginfo, ucontext, sigcontext
    const auto first = read(frame, 4);
    if (!first) return {};
    if (with_siginfo) {
        // Before Linux 2.6.18, two pointers come first: to the siginfo, which follows them, and to the ucontext.
        const std::uint64_t info = *first == frame + 8 ? frame + 8 : frame;
        return info + siginfo + context + first_register;
    }
    // Before Linux 2.6.18, a bare sigcontext. Since then, a ucontext with this mark in its flags.
    constexpr std::uint64_t mark = 0x5ac3c35a;
    return *first == mark ? frame + context + first_register : frame + first_register;
}

std::optional<Registers> by_signal_frame(const Registers& registers, std::span<const std::byte> code,
                                         const MemoryReader& read) {
    const std::uint32_t number = system_call(code, static_cast<std::uint32_t>(registers.get(syscall_register)));
    if (!returns_from_signal(number) || !registers.has(sp)) return {};
    const auto saved = saved_registers(registers.sp(), number == rt_sigreturn, read);
    if (!saved) return {};
    Registers interrupted(Arch::arm);
    for (std::uint8_t register_number = 0; register_number < 16; ++register_number) {
        const auto value = read(*saved + 4u * register_number, 4);
        if (!value) return {};
        interrupted.set(register_number, register_number == pc ? without_thumb_bit(*value) : *value);
    }
    return interrupted;
}

}  // namespace

const ArchInfo arch_arm = {
    .names = {.count = 16, .sp = sp, .pc = pc, .frame_pointer = fp, .link = lr, .return_column = lr, .word_size = 4},
    .preserved = {4, 5, 6, 7, 8, 9, 10, 11},
    .preserved_count = 8,
    .frame_pointer_row = is_apcs_row,
    .by_frame_pointer = by_frame_pointer,
    .is_signal_return = is_signal_return,
    .by_signal_frame = by_signal_frame,
    .is_stub = is_stub,
    .ends_thread = ends_thread,
    .row_by_code = row_by_arm_code,
    .follows_call = follows_call,
    .calls = calls,
};

}  // namespace flamewire::unwind
