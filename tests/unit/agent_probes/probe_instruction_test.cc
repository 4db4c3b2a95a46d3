// Classes of instructions, and the registers that they write. The bytes and their meaning are as objdump shows them.
// oracle_probes compares the registers of whole libraries with Capstone's.
#include "agent/probes/probe_instruction.h"

#include <catch2/catch.hpp>

#include "code_bytes.h"

using namespace flamewire::agent;
using flamewire::unwind::Arch;
using enum InstructionClass;

namespace {

// DWARF numbers.
constexpr std::uint32_t rax = 1, rdx = 1u << 1, rcx = 1u << 2, rbx = 1u << 3, rdi = 1u << 5, rbp = 1u << 6,
                        rsp = 1u << 7, r12 = 1u << 12;

ProbeInstruction decode(Arch arch, const Code& code) {
    INFO("code " << std::hex << std::to_integer<int>(code[0]) << " " << std::to_integer<int>(code.back()));
    const auto found = probe_instruction(arch, code);
    REQUIRE(found);
    CHECK(found->size == code.size());
    CHECK_FALSE(probe_instruction(arch, std::span(code).first(code.size() - 1)));
    return *found;
}
InstructionClass class_of(std::initializer_list<unsigned> code) {
    return decode(Arch::x86_64, bytes(code)).instruction_class;
}
std::uint32_t written(std::initializer_list<unsigned> code, Arch arch = Arch::x86_64) {
    const ProbeInstruction found = decode(arch, bytes(code));
    CHECK(found.falls_through);
    return found.written;
}
ProbeInstruction aarch64(std::uint32_t word) { return decode(Arch::aarch64, words({word})); }

}  // namespace

TEST_CASE("x86-64: classes that kernels emulate") {
    CHECK(class_of({0x90}) == nop);
    CHECK(class_of({0x0f, 0x1f, 0x44, 0, 0}) == long_nop);
    CHECK(class_of({0x0f, 0x1f, 0}) == long_nop);
    CHECK(class_of({0x0f, 0x1f, 0x40, 0}) == long_nop);
    CHECK(class_of({0x66, 0x0f, 0x1f, 0x44, 0, 0}) == long_nop);
    CHECK(class_of({0x0f, 0x1f, 0x80, 0, 0, 0, 0}) == long_nop);
    CHECK(class_of({0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0}) == long_nop);
    CHECK(class_of({0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0}) == long_nop);
    CHECK(class_of({0xf3, 0x0f, 0x1e, 0xfa}) == hint);
    CHECK(class_of({0x55}) == push);
    CHECK(class_of({0x41, 0x57}) == push);
    CHECK(class_of({0x74, 0x10}) == conditional_branch);
    CHECK(class_of({0x0f, 0x84, 0xbf, 0, 0, 0}) == conditional_branch);
    CHECK(class_of({0xeb, 0x10}) == jump);
    CHECK(class_of({0xe9, 0, 1, 0, 0}) == jump);
    CHECK(class_of({0xe8, 0, 1, 0, 0}) == call);
}

TEST_CASE("x86-64: forms that kernels do not emulate, or refuse") {
    CHECK(class_of({0xf3, 0x90}) == other);                                   // pause
    CHECK(class_of({0x66, 0x90}) == other);                                   // refused before Linux 6.2
    CHECK(class_of({0x0f, 0x1f, 0x44, 0, 8}) == other);                       // not in the kernel's table
    CHECK(class_of({0x2e, 0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0}) == other);  // cs is refused
    CHECK(class_of({0xf3, 0x0f, 0x1e, 0xc8}) == other);                       // rdsspd %eax
    CHECK(class_of({0x68, 1, 0, 0, 0}) == other);                             // push of a constant
    CHECK(class_of({0x48, 0x55}) == other);
    CHECK(class_of({0xe2, 0x10}) == other);              // loop
    CHECK(class_of({0xf2, 0xe9, 0, 1, 0, 0}) == other);  // bnd jmp
    CHECK(class_of({0xff, 0xd0}) == other);              // call *%rax
    CHECK(class_of({0x48, 0x85, 0xff}) == other);        // test %rdi, %rdi
    // Processors differ in their operands; xbegin may continue elsewhere.
    CHECK_FALSE(probe_instruction(Arch::x86_64, bytes({0x66, 0xe8, 0, 0, 0, 0})));
    CHECK_FALSE(probe_instruction(Arch::x86_64, bytes({0xc7, 0xf8, 0, 0, 0, 0})));
    CHECK_FALSE(probe_instruction(Arch::x86_64, bytes({0x06})));
    CHECK_FALSE(probe_instruction(Arch::x86_64, {}));
}

TEST_CASE("x86-64: registers that are written") {
    CHECK(written({0x53}) == rsp);                                    // push %rbx
    CHECK(written({0x5b}) == (rbx | rsp));                            // pop %rbx
    CHECK(written({0x48, 0x83, 0xec, 0x18}) == rsp);                  // sub $0x18, %rsp
    CHECK(written({0x48, 0x89, 0xe5}) == rbp);                        // mov %rsp, %rbp
    CHECK(written({0x48, 0x89, 0xfb}) == rbx);                        // mov %rdi, %rbx
    CHECK(written({0x31, 0xff}) == rdi);                              // xor %edi, %edi
    CHECK(written({0x49, 0x89, 0xfc}) == r12);                        // mov %rdi, %r12
    CHECK(written({0x48, 0x8b, 0x07}) == rax);                        // mov (%rdi), %rax
    CHECK(written({0x0f, 0xb6, 0x17}) == rdx);                        // movzbl (%rdi), %edx
    CHECK(written({0xb9, 1, 0, 0, 0}) == rcx);                        // mov $1, %ecx
    CHECK(written({0x48, 0x89, 0x7c, 0x24, 8}) == 0);                 // mov %rdi, 8(%rsp)
    CHECK(written({0x89, 0x3c, 0x24}) == 0);                          // mov %edi, (%rsp)
    CHECK(written({0x48, 0x85, 0xff}) == 0);                          // test %rdi, %rdi
    CHECK(written({0x48, 0x39, 0xfe}) == 0);                          // cmp %rdi, %rsi
    CHECK(written({0x83, 0xff, 3}) == 0);                             // cmp $3, %edi
    CHECK(written({0x80, 0x3d, 0x46, 0x1b, 0x14, 0, 0}) == 0);        // cmpb $0, 0x141b46(%rip)
    CHECK(written({0x48, 0x01, 0x37}) == 0);                          // add %rsi, (%rdi)
    CHECK(written({0xf6, 0x47, 8, 1}) == 0);                          // testb $1, 8(%rdi)
    CHECK(written({0x0f, 0x29, 0x44, 0x24, 0x10}) == 0);              // movaps %xmm0, 0x10(%rsp)
    CHECK(written({0xf3, 0x0f, 0x1e, 0xfa}) == 0);                    // endbr64
    CHECK(written({0x40, 0xb7, 1}) == all_registers);                 // mov $1, %dil
    CHECK(written({0x48, 0x87, 0xfe}) == all_registers);              // xchg %rdi, %rsi
    CHECK(written({0x97}) == all_registers);                          // xchg %eax, %edi
    CHECK(written({0x48, 0xc1, 0xe7, 3}) == all_registers);           // shl $3, %rdi
    CHECK(written({0x48, 0xf7, 0xe7}) == all_registers);              // mul %rdi
    CHECK(written({0xf3, 0x48, 0x0f, 0x1e, 0xcf}) == all_registers);  // rdsspq %rdi
    CHECK(written({0x66, 0x48, 0x0f, 0x7e, 0xc7}) == all_registers);  // movq %xmm0, %rdi
    CHECK(written({0x0f, 0x50, 0xf8}) == all_registers);              // movmskps %xmm0, %edi
    CHECK(written({0xf2, 0x48, 0x0f, 0x2c, 0xf8}) == all_registers);  // cvttsd2si %xmm0, %rdi
    CHECK(written({0xf0, 0x48, 0x0f, 0xc1, 0x3e}) == all_registers);  // lock xadd %rdi, (%rsi)
}

TEST_CASE("x86-64: where the next instruction does not always follow") {
    for (const auto& code :
         {bytes({0x0f, 0x05}), bytes({0x0f, 0x0b}), bytes({0xcc}), bytes({0xc3}), bytes({0xf3, 0xc3}),
          bytes({0xe8, 0, 0, 0, 0}), bytes({0xff, 0x15, 0, 0, 0, 0}), bytes({0xff, 0xe0}), bytes({0xc6, 0xf8, 1}),
          bytes({0xf4}), bytes({0x74, 0}), bytes({0xeb, 0})})
        CHECK_FALSE(decode(Arch::x86_64, code).falls_through);
    CHECK(decode(Arch::x86_64, bytes({0xff, 0xe0})).jumps_indirect);
    CHECK(decode(Arch::x86_64, bytes({0x3e, 0xff, 0xe0})).jumps_indirect);  // notrack jmp *%rax
    CHECK_FALSE(decode(Arch::x86_64, bytes({0xff, 0xd0})).jumps_indirect);
    CHECK_FALSE(decode(Arch::x86_64, bytes({0xc3})).jumps_indirect);
    const ProbeInstruction back = decode(Arch::x86_64, bytes({0x75, 0xf0}));
    CHECK(back.may_jump);
    CHECK(back.target == -14);
    CHECK_FALSE(decode(Arch::x86_64, bytes({0xe8, 0, 0, 0, 0})).may_jump);
}

TEST_CASE("i386: the same bytes mean other instructions") {
    constexpr std::uint32_t eax = 1, ecx = 1u << 1, edx = 1u << 2, ebx = 1u << 3, esp = 1u << 4, edi = 1u << 7;
    CHECK(written({0x47}, Arch::x86) == edi);  // inc %edi
    CHECK(written({0x57}, Arch::x86) == esp);  // push %edi
    CHECK(decode(Arch::x86, bytes({0x57})).instruction_class == push);
    CHECK(written({0x83, 0xec, 0x1c}, Arch::x86) == esp);                     // sub $0x1c, %esp
    CHECK(written({0x8b, 0x44, 0x24, 4}, Arch::x86) == eax);                  // mov 4(%esp), %eax
    CHECK(written({0x8b, 0x54, 0x24, 8}, Arch::x86) == edx);                  // mov 8(%esp), %edx
    CHECK(written({0x89, 0xd9}, Arch::x86) == ecx);                           // mov %ebx, %ecx
    CHECK(written({0xbb, 1, 0, 0, 0}, Arch::x86) == ebx);                     // mov $1, %ebx
    CHECK(written({0xa1, 0, 0xc0, 4, 8}, Arch::x86) == all_registers);        // mov 0x804c000, %eax
    CHECK(written({0x66, 0xa3, 0, 0xc0, 4, 8}, Arch::x86) == all_registers);  // mov %ax, 0x804c000
    CHECK(decode(Arch::x86, bytes({0xf3, 0x0f, 0x1e, 0xfb})).instruction_class == hint);
    CHECK(decode(Arch::x86, bytes({0xe8, 0, 0, 0, 0})).instruction_class == call);
    CHECK_FALSE(probe_instruction(Arch::x86, bytes({0xc5, 0x3c, 0x24, 0, 0, 0})));  // lds
    CHECK_FALSE(probe_instruction(Arch::x86, bytes({0x67, 0x8b, 0x47, 4})));        // 16-bit addresses
}

TEST_CASE("aarch64: classes") {
    CHECK(aarch64(0xd503201f).instruction_class == nop);
    CHECK(aarch64(0xd503245f).instruction_class == hint);   // bti c
    CHECK(aarch64(0xd503233f).instruction_class == hint);   // paciasp
    CHECK(aarch64(0xd503205f).instruction_class == other);  // wfe
    CHECK(aarch64(0x14000002).instruction_class == jump);
    CHECK(aarch64(0xd61f0200).instruction_class == jump);   // br x16
    CHECK(aarch64(0xd65f03c0).instruction_class == jump);   // ret
    CHECK(aarch64(0xd65f0bff).instruction_class == other);  // retaa
    CHECK(aarch64(0x97ffffff).instruction_class == call);
    CHECK(aarch64(0xd63f0020).instruction_class == call);                // blr x1
    CHECK(aarch64(0x54000040).instruction_class == conditional_branch);  // b.eq
    CHECK(aarch64(0x54000050).instruction_class == other);               // bc.eq
    CHECK(aarch64(0xb4000060).instruction_class == conditional_branch);  // cbz x0
    CHECK(aarch64(0x37180060).instruction_class == conditional_branch);  // tbnz w0, #3
    CHECK(aarch64(0xb0000bd0).instruction_class == address);             // adrp x16
    CHECK(aarch64(0x10000001).instruction_class == address);             // adr x1
    CHECK(aarch64(0x58000041).instruction_class == literal_load);        // ldr x1, 8
    CHECK(aarch64(0x98000041).instruction_class == literal_load);        // ldrsw x1, 8
    CHECK(aarch64(0x1c000041).instruction_class == literal_load);        // ldr s1, 8
    CHECK(aarch64(0xa9bf7bfd).instruction_class == other);               // stp x29, x30, [sp, #-16]!
    CHECK_FALSE(probe_instruction(Arch::aarch64, words({0x00000000})));  // udf
    CHECK_FALSE(probe_instruction(Arch::arm, words({0xe1a00000})));
}

TEST_CASE("aarch64: registers that are written, and where code continues") {
    constexpr std::uint32_t sp = 1u << 31;
    CHECK(aarch64(0xa9bf7bfd).written == sp);             // stp x29, x30, [sp, #-16]!
    CHECK(aarch64(0xa90153f3).written == 0);              // stp x19, x20, [sp, #16]
    CHECK(aarch64(0xf90007e0).written == 0);              // str x0, [sp, #8]
    CHECK(aarch64(0xf81f0ff3).written == sp);             // str x19, [sp, #-16]!
    CHECK(aarch64(0x3d8007e0).written == 0);              // str q0, [sp, #16]
    CHECK(aarch64(0x910003fd).written == 1u << 29);       // mov x29, sp
    CHECK(aarch64(0xaa0003f3).written == 1u << 19);       // mov x19, x0
    CHECK(aarch64(0x52800001).written == 1u << 1);        // mov w1, #0
    CHECK(aarch64(0xb0000bd0).written == 1u << 16);       // adrp x16
    CHECK(aarch64(0xf9400000).written == all_registers);  // ldr x0, [x0]
    CHECK(aarch64(0xf8200020).written == all_registers);  // ldadd x0, x0, [x1]
    CHECK(aarch64(0x9e660000).written == all_registers);  // fmov x0, d0
    CHECK(aarch64(0xd53bd040).written == all_registers);  // mrs x0, tpidr_el0
    for (const std::uint32_t word : {0xd4000001u, 0xd4200000u, 0xd65f03c0u, 0x94000000u, 0x54000040u, 0xd61f0200u})
        CHECK_FALSE(aarch64(word).falls_through);
    CHECK_FALSE(aarch64(0x885ffc01).falls_through);  // ldaxr w1, [x0]: no trap may come before the stlxr
    CHECK(aarch64(0xd61f0200).jumps_indirect);
    CHECK_FALSE(aarch64(0xd65f03c0).jumps_indirect);
    CHECK_FALSE(aarch64(0xd63f0020).jumps_indirect);
    CHECK(aarch64(0x17ffffff).target == -4);
    CHECK(aarch64(0xb4ffffe0).target == -4);
    CHECK(aarch64(0x3607ffe0).target == -4);
    CHECK(aarch64(0x54000040).target == 8);
}
