#include "agent/probes/probed_code.h"

#include <link.h>

#include <array>
#include <cstddef>
#include <span>

// GNU assemblers of Arm take @ for a comment.
#if defined(__x86_64__)
asm(R"(
    .pushsection .text.flamewire_probed_code,"ax",@progbits
    .globl flamewire_probed_emulated, flamewire_probed_nop, flamewire_probed_other
    .hidden flamewire_probed_emulated, flamewire_probed_nop, flamewire_probed_other
    .type flamewire_probed_emulated, @function
    .type flamewire_probed_nop, @function
    .type flamewire_probed_other, @function
flamewire_probed_emulated:
    push %rbp
    mov %rdi, %rbp
    push %rax
    pop %rax
    pop %rbp
    ret
flamewire_probed_nop:
    .byte 0x0f, 0x1f, 0x40, 0x00
    ret
flamewire_probed_other:
    lea (%rdi), %rax
    ret
    .popsection
)");
#elif defined(__aarch64__)
asm(R"(
    .pushsection .text.flamewire_probed_code,"ax",%progbits
    .globl flamewire_probed_emulated, flamewire_probed_nop, flamewire_probed_other
    .hidden flamewire_probed_emulated, flamewire_probed_nop, flamewire_probed_other
    .type flamewire_probed_emulated, %function
    .type flamewire_probed_nop, %function
    .type flamewire_probed_other, %function
    .balign 4
flamewire_probed_emulated:
    stp x29, x30, [sp, #-16]!
    mov x29, x0
    bl 1f
    ldp x29, x30, [sp], #16
1:  ret
flamewire_probed_nop:
    nop
    ret
flamewire_probed_other:
    add x9, x0, #1
    ret
    .popsection
)");
#endif

namespace flamewire::agent {

#if defined(__x86_64__) || defined(__aarch64__)

namespace {

extern "C" {
[[gnu::visibility("hidden")]] void flamewire_probed_emulated(const void* frame);
[[gnu::visibility("hidden")]] void flamewire_probed_nop(const void* frame);
[[gnu::visibility("hidden")]] void flamewire_probed_other(const void* frame);
}

// By ProbedKind: the function, and where in it the probe is. It is after the frame pointer was set.
struct Probed {
    void (*function)(const void* frame);
    std::uint8_t offset;
};
#if defined(__x86_64__)
constexpr std::uint8_t after_frame_pointer = 4;
#else
constexpr std::uint8_t after_frame_pointer = 8;
#endif
constexpr std::array<Probed, 3> probed{
    {{flamewire_probed_emulated, after_frame_pointer}, {flamewire_probed_nop, 0}, {flamewire_probed_other, 0}}};

struct Search {
    std::uintptr_t address;
    std::optional<std::uint64_t> file_offset;
};

// The first call is for the program itself; the others would be for its libraries.
int find_in_program(dl_phdr_info* info, std::size_t, void* argument) {
    auto& search = *static_cast<Search*>(argument);
    for (const auto& segment : std::span(info->dlpi_phdr, info->dlpi_phnum)) {
        const std::uintptr_t at = search.address - info->dlpi_addr - segment.p_vaddr;
        if (segment.p_type == PT_LOAD && at < segment.p_filesz) search.file_offset = segment.p_offset + at;
    }
    return 1;
}

}  // namespace

std::optional<ProbedCode> probed_code(ProbedKind kind) {
    const Probed& chosen = probed[static_cast<std::size_t>(kind)];
    Search search{reinterpret_cast<std::uintptr_t>(chosen.function) + chosen.offset, {}};
    ::dl_iterate_phdr(find_in_program, &search);
    if (!search.file_offset) return std::nullopt;
    return ProbedCode{chosen.function, *search.file_offset};
}

#else

std::optional<ProbedCode> probed_code(ProbedKind) { return std::nullopt; }

#endif

}  // namespace flamewire::agent
