// 32-bit x86. Sources: System V psABI of i386; the kernel's uapi/asm/sigcontext.h and asm/sigframe.h.
#include <algorithm>
#include <array>

#include "unwind/arch/arch.h"

namespace flamewire::unwind {

namespace {

constexpr std::uint8_t eax = 0, ecx = 1, edx = 2, ebx = 3, esp = 4, ebp = 5, esi = 6, edi = 7, eip = 8;

bool frame_pointer_row(const FrameRow& row) {
    const RegisterRule& fp = row.registers[ebp];
    const RegisterRule& ra = row.registers[row.return_column];
    return !row.cfa_is_expression && row.cfa_register == ebp && row.cfa_offset == 8 && !row.signal_frame &&
           fp.kind == RegisterRule::Kind::at_cfa && fp.offset == -8 && ra.kind == RegisterRule::Kind::at_cfa &&
           ra.offset == -4;
}

std::optional<Registers> by_frame_pointer(const Registers& registers, const MemoryReader& read) {
    if (!registers.has(ebp)) return std::nullopt;
    const std::uint64_t frame = registers.get(ebp);
    if (frame % 4 != 0 || frame < registers.get(esp)) return std::nullopt;
    const auto return_address = read(frame + 4, 4);
    if (!return_address) return std::nullopt;
    const auto outer_frame = read(frame, 4);
    if (!outer_frame) return std::nullopt;
    Registers caller(Arch::x86);
    caller.set(ebp, *outer_frame);
    caller.set(esp, frame + 8);
    caller.set(eip, *return_address);
    return caller;
}

// pop %eax; mov $119, %eax; int $0x80: sigreturn. mov $173, %eax; int $0x80: rt_sigreturn.
constexpr std::array<unsigned char, 8> plain_return{0x58, 0xb8, 119, 0, 0, 0, 0xcd, 0x80};
constexpr std::array<unsigned char, 7> rt_return{0xb8, 173, 0, 0, 0, 0xcd, 0x80};

bool starts_with(std::span<const std::byte> code, std::span<const unsigned char> expected) {
    return code.size() >= expected.size() && std::ranges::equal(code.first(expected.size()), std::as_bytes(expected));
}

bool is_signal_return(std::span<const std::byte> code) {
    return starts_with(code, plain_return) || starts_with(code, rt_return);
}

// Offsets of registers in struct sigcontext_32.
struct Place {
    std::uint8_t number, offset;
};
constexpr std::array<Place, 9> sigcontext_places{{
    {edi, 16},
    {esi, 20},
    {ebp, 24},
    {esp, 28},
    {ebx, 32},
    {edx, 36},
    {ecx, 40},
    {eax, 44},
    {eip, 56},
}};

std::optional<Registers> by_signal_frame(const Registers& registers, std::span<const std::byte> code,
                                         const MemoryReader& read) {
    if (!is_signal_return(code) || !registers.has(esp)) return std::nullopt;
    // The handler's return popped the frame's first word. sp points to its first argument, the signal number. The
    // sigcontext follows, or with rt_sigreturn pointers to siginfo and ucontext (whose mcontext follows 20 bytes).
    std::uint64_t context = registers.get(esp) + 4;
    if (starts_with(code, rt_return)) {
        const auto ucontext = read(registers.get(esp) + 8, 4);
        if (!ucontext) return std::nullopt;
        context = *ucontext + 20;
    }
    Registers interrupted(Arch::x86);
    for (const Place& place : sigcontext_places) {
        const auto value = read(context + place.offset, 4);
        if (!value) return std::nullopt;
        interrupted.set(place.number, *value);
    }
    return interrupted;
}

// A PLT entry: jmp *ADDRESS or jmp *N(%ebx), possibly after endbr32.
bool is_stub(std::span<const std::byte>, std::span<const std::byte> code) {
    constexpr std::array<unsigned char, 4> endbr32{0xf3, 0x0f, 0x1e, 0xfb};
    constexpr std::array<unsigned char, 2> jump{0xff, 0x25}, jump_by_ebx{0xff, 0xa3};
    if (starts_with(code, endbr32)) code = code.subspan(endbr32.size());
    return starts_with(code, jump) || starts_with(code, jump_by_ebx);
}

// musl: mov %eax, %ebx; xor %eax, %eax; inc %eax; int $128. System call 1 is exit, which ends the thread.
bool ends_thread(std::span<const std::byte> code) {
    constexpr std::array<unsigned char, 7> exit_thread{0x89, 0xc3, 0x31, 0xc0, 0x40, 0xcd, 0x80};
    return starts_with(code, exit_thread);
}

}  // namespace

const ArchInfo arch_x86{
    .names = {.count = 9,
              .sp = esp,
              .pc = eip,
              .frame_pointer = ebp,
              .link = no_register,
              .return_column = eip,
              .word_size = 4},
    .preserved = {ebx, ebp, esi, edi},
    .preserved_count = 4,
    .frame_pointer_row = frame_pointer_row,
    .by_frame_pointer = by_frame_pointer,
    .is_signal_return = is_signal_return,
    .by_signal_frame = by_signal_frame,
    .is_stub = is_stub,
    .ends_thread = ends_thread,
};

}  // namespace flamewire::unwind
