// x86-64. Sources: System V psABI of AMD64, sections 3.2 and 3.6; the kernel's uapi/asm/sigcontext.h and
// asm/sigframe.h.
#include <algorithm>
#include <array>

#include "unwind/arch/arch.h"
#include "unwind/code/x86_return.h"

namespace flamewire::unwind {

namespace {

constexpr std::uint8_t rbx = 3, rbp = 6, rsp = 7, r12 = 12, r13 = 13, r14 = 14, r15 = 15, rip = 16;

bool frame_pointer_row(const FrameRow& row) {
    const RegisterRule& fp = row.registers[rbp];
    const RegisterRule& ra = row.registers[row.return_column];
    const bool by_frame_pointer = !row.cfa_is_expression && row.cfa_register == rbp && row.cfa_offset == 16;
    return (by_frame_pointer || row.frame_pointer_set) && !row.signal_frame && fp.kind == RegisterRule::Kind::at_cfa &&
           fp.offset == -16 && ra.kind == RegisterRule::Kind::at_cfa && ra.offset == -8;
}

std::optional<Registers> by_frame_pointer(const Registers& registers, const MemoryReader& read) {
    if (!registers.has(rbp)) return std::nullopt;
    const std::uint64_t frame = registers.get(rbp);
    if (frame % 8 != 0 || frame < registers.get(rsp)) return std::nullopt;
    const auto return_address = read(frame + 8, 8);
    if (!return_address) return std::nullopt;
    const auto outer_frame = read(frame, 8);
    if (!outer_frame) return std::nullopt;
    Registers caller(Arch::x86_64);
    caller.set(rbp, *outer_frame);
    caller.set(rsp, frame + 16);
    caller.set(rip, *return_address);
    return caller;
}

// mov $15, %eax or %rax; syscall: rt_sigreturn is system call 15.
constexpr std::array<unsigned char, 9> return_by_rax{0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05};
constexpr std::array<unsigned char, 7> return_by_eax{0xb8, 15, 0, 0, 0, 0x0f, 0x05};

bool starts_with(std::span<const std::byte> code, std::span<const unsigned char> expected) {
    return code.size() >= expected.size() && std::ranges::equal(code.first(expected.size()), std::as_bytes(expected));
}

bool is_signal_return(std::span<const std::byte> code) {
    return starts_with(code, return_by_rax) || starts_with(code, return_by_eax);
}

// The handler's return popped the first word of struct rt_sigframe, so sp points to its ucontext. The sigcontext there
// (after flags, link and stack_t: 40 bytes) has the registers in this order.
constexpr std::array<std::uint8_t, 17> sigcontext_order{8, 9,   10,  11, 12, 13, 14,  15, 5,
                                                        4, rbp, rbx, 1,  0,  2,  rsp, rip};

std::optional<Registers> by_signal_frame(const Registers& registers, std::span<const std::byte> code,
                                         const MemoryReader& read) {
    if (!is_signal_return(code) || !registers.has(rsp)) return std::nullopt;
    Registers interrupted(Arch::x86_64);
    std::uint64_t address = registers.get(rsp) + 40;
    for (const std::uint8_t number : sigcontext_order) {
        const auto value = read(address, 8);
        if (!value) return std::nullopt;
        interrupted.set(number, *value);
        address += 8;
    }
    return interrupted;
}

constexpr std::array<unsigned char, 4> endbr64{0xf3, 0x0f, 0x1e, 0xfa};

// A PLT entry or a tail call: jmp *N(%rip), possibly after endbr64 and with a bnd prefix.
bool is_stub(std::span<const std::byte>, std::span<const std::byte> code) {
    constexpr std::array<unsigned char, 2> jump{0xff, 0x25};
    constexpr std::array<unsigned char, 3> bound_jump{0xf2, 0xff, 0x25};
    if (starts_with(code, endbr64)) code = code.subspan(endbr64.size());
    return starts_with(code, jump) || starts_with(code, bound_jump);
}

// musl: mov %eax, %edi; xor %eax, %eax; mov $60, %al; syscall. System call 60 is exit, which ends the thread. (glibc's
// clone has a table that marks it as outermost.)
bool ends_thread(std::span<const std::byte> code) {
    constexpr std::array<unsigned char, 8> exit_thread{0x89, 0xc7, 0x31, 0xc0, 0xb0, 60, 0x0f, 0x05};
    return starts_with(code, exit_thread);
}

// CPython's perf trampolines, without the endbr64 that some start with. Between the first and the last instruction, sp
// is 16 bytes below the CFA.
struct Trampoline {
    std::span<const unsigned char> code;
    std::array<std::uint8_t, 5> instructions;  // offsets; unused ones repeat the last
    std::uint8_t after_call, last;
    std::uint8_t frame_pointer_set;  // set from this offset on; 0: never
};
constexpr std::array<unsigned char, 11> by_sub{0x48, 0x83, 0xec, 8,         // sub $8, %rsp
                                               0xff, 0xd1,                  // call *%rcx
                                               0x48, 0x83, 0xc4, 8, 0xc3};  // add $8, %rsp; ret
constexpr std::array<unsigned char, 8> by_push{0x55, 0x48, 0x89, 0xe5,      // push %rbp; mov %rsp, %rbp
                                               0xff, 0xd1,                  // call *%rcx
                                               0x5d, 0xc3};                 // pop %rbp; ret
constexpr std::array<Trampoline, 2> trampolines{
    {{by_sub, {0, 4, 6, 10, 10}, 6, 10, 0}, {by_push, {0, 1, 4, 6, 7}, 6, 7, 4}}};

std::optional<FrameRow> trampoline_row(std::span<const std::byte> code, std::size_t at, bool return_address) {
    if (at > code.size()) return std::nullopt;
    std::size_t before = 0;
    if (!return_address && starts_with(code.subspan(at), endbr64)) before = endbr64.size();
    for (const Trampoline& trampoline : trampolines) {
        for (std::size_t i = 0; i < trampoline.instructions.size(); ++i) {
            const std::size_t offset = trampoline.instructions[i];
            if (before != 0 && offset != 0) break;
            if (return_address && offset != trampoline.after_call) continue;
            if (at + before < offset || !starts_with(code.subspan(at + before - offset), trampoline.code)) continue;
            const bool is_last = offset == trampoline.last;
            FrameRow row;
            row.start = at;
            row.end = before != 0 ? at + before
                                  : at - offset + (is_last ? trampoline.code.size() : trampoline.instructions[i + 1]);
            row.cfa_register = rsp;
            row.cfa_offset = offset == 0 || is_last ? 8 : 16;
            row.return_column = rip;
            row.registers[rip] = {.kind = RegisterRule::Kind::at_cfa, .offset = -8};
            row.frame_pointer_set = trampoline.frame_pointer_set != 0 && offset >= trampoline.frame_pointer_set;
            if (trampoline.frame_pointer_set != 0 && row.cfa_offset == 16)
                row.registers[rbp] = {.kind = RegisterRule::Kind::at_cfa, .offset = -16};
            return row;
        }
    }
    return std::nullopt;
}

}  // namespace

const ArchInfo arch_x86_64{
    .names = {.count = 17,
              .sp = rsp,
              .pc = rip,
              .frame_pointer = rbp,
              .link = no_register,
              .return_column = rip,
              .word_size = 8},
    .preserved = {rbx, rbp, r12, r13, r14, r15},
    .preserved_count = 6,
    .frame_pointer_row = frame_pointer_row,
    .by_frame_pointer = by_frame_pointer,
    .is_signal_return = is_signal_return,
    .by_signal_frame = by_signal_frame,
    .is_stub = is_stub,
    .ends_thread = ends_thread,
    .trampoline_row = trampoline_row,
    .trampoline_before = 10,
    .trampoline_after = 15,
    .row_by_code = row_by_x86_64_code,
    .follows_call = follows_x86_64_call,
};

}  // namespace flamewire::unwind
