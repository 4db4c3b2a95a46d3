// aarch64. Sources: "Procedure Call Standard for the Arm 64-bit Architecture", section 6; "DWARF for the Arm 64-bit
// Architecture"; the kernel's uapi/asm/sigcontext.h and asm/ucontext.h.
#include <algorithm>
#include <array>

#include "unwind/arch/arch.h"

namespace flamewire::unwind {

namespace {

constexpr std::uint8_t fp = 29, lr = 30, sp = 31, pc = 32;

// A frame record: x29 points to the pair of the caller's x29 and the return address, anywhere in the frame. Even then
// compilers compute the CFA from sp. The walk must check whether x29 points to the pair.
bool frame_pointer_row(const FrameRow& row) {
    const RegisterRule& outer_fp = row.registers[fp];
    const RegisterRule& ra = row.registers[row.return_column];
    if (row.cfa_is_expression || row.signal_frame || outer_fp.kind != RegisterRule::Kind::at_cfa ||
        ra.kind != RegisterRule::Kind::at_cfa || ra.offset != outer_fp.offset + 8)
        return false;
    return row.cfa_register == sp || (row.cfa_register == fp && outer_fp.offset == -row.cfa_offset);
}

std::optional<Registers> by_frame_pointer(const Registers& registers, const MemoryReader& read) {
    if (!registers.has(fp)) return std::nullopt;
    const std::uint64_t frame = registers.get(fp);
    if (frame % 8 != 0 || frame < registers.get(sp)) return std::nullopt;
    const auto outer_frame = read(frame, 8);
    if (!outer_frame) return std::nullopt;
    const auto return_address = read(frame + 8, 8);
    if (!return_address) return std::nullopt;
    // The record can be anywhere in the frame, so the caller's sp is unknown.
    Registers caller(Arch::aarch64);
    caller.set(fp, *outer_frame);
    caller.set(pc, *return_address);
    return caller;
}

// mov x8, #139; svc #0: rt_sigreturn is system call 139. Code is little-endian regardless of data byte order.
constexpr std::array<unsigned char, 8> signal_return{0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4};

bool is_signal_return(std::span<const std::byte> code) {
    return code.size() >= signal_return.size() &&
           std::ranges::equal(code.first(signal_return.size()), std::as_bytes(std::span(signal_return)));
}

// sp points to struct rt_sigframe: 128 bytes of siginfo, then the ucontext, whose sigcontext is 16-byte aligned at 176
// and has the fault address before x0 to x30, sp and pc.
constexpr std::uint64_t first_register_offset = 128 + 176 + 8;

std::optional<Registers> by_signal_frame(const Registers& registers, std::span<const std::byte> code,
                                         const MemoryReader& read) {
    if (!is_signal_return(code) || !registers.has(sp)) return std::nullopt;
    Registers interrupted(Arch::aarch64);
    for (std::size_t number = 0; number <= pc; ++number) {
        const auto value = read(registers.get(sp) + first_register_offset + number * 8, 8);
        if (!value) return std::nullopt;
        interrupted.set(number, *value);
    }
    return interrupted;
}

std::uint32_t instruction_at(std::span<const std::byte> code, std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = 4; i-- > 0 && at + 4 <= code.size();)
        value = value << 8 | std::to_integer<std::uint32_t>(code[at + i]);
    return value;
}

// Instructions that a PLT entry or a veneer executes before its jump. They use only x16 and x17.
bool is_stub_instruction(std::uint32_t code) {
    constexpr std::uint32_t bti_c = 0xd503245f, autia1716 = 0xd503219f;
    return code == bti_c || code == autia1716 || (code & 0x9f00001f) == 0x90000010 ||  // adrp x16
           (code & 0xffc003ff) == 0xf9400211 || (code & 0xffc003ff) == 0x91000210;     // ldr x17, [x16]; add x16, x16
}

bool is_stub(std::span<const std::byte> before, std::span<const std::byte> code) {
    constexpr std::uint32_t br_x16 = 0xd61f0200, br_x17 = 0xd61f0220, push_in_plt0 = 0xa9bf7bf0;
    std::size_t at = 0;
    while (is_stub_instruction(instruction_at(code, at))) at += 4;
    const std::uint32_t last = instruction_at(code, at);
    if (last != br_x16 && last != br_x17) return false;
    // PLT0, the PLT's first entry, does the same after it pushes x16 and x30.
    for (std::size_t end = before.size(); end >= 4; end -= 4) {
        const std::uint32_t earlier = instruction_at(before, end - 4);
        if (earlier == push_in_plt0) return false;
        if (!is_stub_instruction(earlier)) break;
    }
    return true;
}

// mov x8, #93; svc #0: system call 93 is exit, which ends the thread.
bool ends_thread(std::span<const std::byte> code) {
    return instruction_at(code, 0) == 0xd2800ba8 && instruction_at(code, 4) == 0xd4000001;
}

// CPython's perf trampoline: stp x29, x30, [sp, #-16]!; mov x29, sp; blr x3; ldp x29, x30, [sp], #16; then ret.
constexpr std::array<std::uint32_t, 4> trampoline{0xa9bf7bfd, 0x910003fd, 0xd63f0060, 0xa8c17bfd};
constexpr std::uint32_t ret = 0xd65f03c0;

// Whether the trampoline's stp is at code[start]. Before ret, the return address may be authenticated.
bool is_trampoline(std::span<const std::byte> code, std::size_t start) {
    constexpr std::uint32_t autiasp = 0xd50323bf, autibsp = 0xd50323ff;
    for (const std::uint32_t instruction : trampoline) {
        if (instruction_at(code, start) != instruction) return false;
        start += 4;
    }
    const std::uint32_t last = instruction_at(code, start);
    return last == ret || ((last == autiasp || last == autibsp) && instruction_at(code, start + 4) == ret);
}

std::optional<FrameRow> trampoline_row(std::span<const std::byte> code, std::size_t at, bool return_address) {
    constexpr std::uint32_t paciasp = 0xd503233f, pacibsp = 0xd503237f, bti_c = 0xd503245f;
    constexpr std::size_t after_call = 12, body_end = 16, last = 20;
    const std::uint32_t here = instruction_at(code, at);
    const bool at_first = here == paciasp || here == pacibsp || here == bti_c;
    std::size_t offset = return_address ? after_call : 0;
    if (at_first && !return_address) {
        if (!is_trampoline(code, at + 4)) return std::nullopt;
    } else {
        const std::size_t end = return_address ? after_call : last;
        while (offset <= end && (at < offset || !is_trampoline(code, at - offset))) offset += 4;
        if (offset > end) return std::nullopt;
        // Instructions after the ret are not part of the trampoline.
        if (offset == last && instruction_at(code, at - 4) == ret) return std::nullopt;
    }
    FrameRow row;
    row.start = at;
    row.end = at + 4;
    row.cfa_register = sp;
    row.return_column = lr;
    if (offset > 0 && offset < body_end) {
        row.cfa_offset = 16;
        row.registers[fp] = {.kind = RegisterRule::Kind::at_cfa, .offset = -16};
        row.registers[lr] = {.kind = RegisterRule::Kind::at_cfa, .offset = -8};
    }
    return row;
}

}  // namespace

const ArchInfo arch_aarch64{
    .names = {.count = 33, .sp = sp, .pc = pc, .frame_pointer = fp, .link = lr, .return_column = lr, .word_size = 8},
    .preserved = {19, 20, 21, 22, 23, 24, 25, 26, 27, 28, fp},
    .preserved_count = 11,
    .frame_pointer_row = frame_pointer_row,
    .by_frame_pointer = by_frame_pointer,
    .is_signal_return = is_signal_return,
    .by_signal_frame = by_signal_frame,
    .is_stub = is_stub,
    .ends_thread = ends_thread,
    .trampoline_row = trampoline_row,
    .trampoline_before = 20,
    .trampoline_after = 28,
};

}  // namespace flamewire::unwind
