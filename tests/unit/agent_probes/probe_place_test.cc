// Where probes are placed, in functions of Debian's libraries as objdump shows them and in constructed ones.
// oracle_probes checks the places in all functions of a few libraries.
#include "agent/probes/probe_place.h"

#include <catch2/catch.hpp>

#include "argument_registers.h"
#include "code_bytes.h"

using namespace flamewire::agent;
using flamewire::unwind::Arch;
using enum InstructionClass;

namespace {

constexpr InstructionClasses x86_classes{nop, push, conditional_branch, jump, call};
constexpr InstructionClasses aarch64_classes{nop, conditional_branch, jump, call, address};

ProbePlace place(const Code& code, std::uint32_t registers = argument_registers(Arch::x86_64), bool complete = true,
                 InstructionClasses emulated = x86_classes) {
    const auto found = place_probe({Arch::x86_64, code, complete}, {.registers = registers}, emulated);
    REQUIRE(found);
    CHECK(found->emulated == emulated.contains(found->instruction_class));
    return *found;
}

ProbePlace place_in(Arch arch, const Code& code, std::uint32_t registers, InstructionClasses emulated) {
    const auto found = place_probe({arch, code, true}, {.registers = registers}, emulated);
    REQUIRE(found);
    return *found;
}

// free of glibc 2.36 (Debian 12), its hot paths.
const Code free_of_glibc = bytes({
    0x48, 0x85, 0xff,              //  0: test %rdi, %rdi
    0x0f, 0x84, 0x11, 0,    0, 0,  //  3: je 1a
    0x55,                          //  9: push %rbp
    0x48, 0x8d, 0x77, 0xf0,        //  a: lea -0x10(%rdi), %rsi
    0x53,                          //  e: push %rbx
    0x48, 0x83, 0xec, 0x18,        //  f: sub $0x18, %rsp
    0x48, 0x8b, 0x47, 0xf8,        // 13: mov -8(%rdi), %rax
    0x5b, 0x5d, 0xc3,              // 17: pop %rbx; pop %rbp; ret
    0xc3,                          // 1a: ret
});

}  // namespace

TEST_CASE("x86-64: free gets its probe at the branch, malloc at its first push") {
    const ProbePlace je = place(free_of_glibc);
    CHECK(je.offset == 3);
    CHECK(je.instruction_class == conditional_branch);
    CHECK(je.emulated);
    CHECK_FALSE(je.is_entry());
    // push %r12; push %rbp; push %rbx; mov %rdi, %rbx; sub $0x10, %rsp; cmpb $0, 0x141b46(%rip)
    const ProbePlace entry = place(
        bytes({0x41, 0x54, 0x55, 0x53, 0x48, 0x89, 0xfb, 0x48, 0x83, 0xec, 0x10, 0x80, 0x3d, 0x46, 0x1b, 0x14, 0, 0}));
    CHECK(entry.is_entry());
    CHECK(entry.instruction_class == push);
    CHECK(entry.emulated);
    // If branches are not emulated, no later instruction is passed by every call.
    const ProbePlace test = place(free_of_glibc, 0, true, {nop, push});
    CHECK(test.is_entry());
    CHECK(test.instruction_class == other);
    CHECK_FALSE(test.emulated);
    CHECK_FALSE(place(free_of_glibc, 0, true, {}).emulated);
}

TEST_CASE("x86-64: return probes stay at the entry") {
    const auto found = place_probe({Arch::x86_64, free_of_glibc, true}, {.entry = true}, x86_classes);
    REQUIRE(found);
    CHECK(found->is_entry());
    CHECK_FALSE(found->emulated);
}

TEST_CASE("x86-64: nothing after an instruction that overwrites an argument, unless no argument is wanted") {
    constexpr std::uint32_t rdi = 1u << 5, rsi = 1u << 4, rsp = 1u << 7;
    // sub $8, %rsp; mov %rdi, %rsi; call
    const Code code = bytes({0x48, 0x83, 0xec, 8, 0x48, 0x89, 0xfe, 0xe8, 0, 1, 0, 0, 0xc3});
    CHECK(place(code).is_entry());
    CHECK(place(code, rsi).is_entry());
    CHECK(place(code, rdi).offset == 7);
    CHECK(place(code, 0).offset == 7);
    CHECK(place(code, 0).instruction_class == call);
    CHECK(place(code, rdi | rsp).is_entry());
    // The chosen instruction itself may change sp, because a probe hits before it.
    CHECK(place(bytes({0x48, 0x85, 0xff, 0x55, 0x5d, 0xc3}), rdi | rsp).offset == 3);
}

TEST_CASE("x86-64: nothing after a branch, a call, a jump, a system call or an unknown instruction") {
    for (const auto& [code, size] : {std::pair{bytes({0x74, 0}), 2},
                                     {bytes({0xe8, 0, 0, 0, 0}), 5},
                                     {bytes({0xeb, 0}), 2},
                                     {bytes({0x0f, 0x05}), 2},
                                     {bytes({0x06}), 1}}) {
        Code whole = bytes({0x31, 0xc0});  // xor %eax, %eax
        whole.insert(whole.end(), code.begin(), code.end());
        for (const unsigned byte : {0x55, 0x5d, 0xc3}) whole.push_back(static_cast<std::byte>(byte));
        CHECK(place(whole, 0, true, {push}).is_entry());
        whole.erase(whole.begin() + 2, whole.begin() + 2 + size);
        CHECK(place(whole, 0, true, {push}).offset == 2);
    }
}

TEST_CASE("x86-64: only the first eight instructions") {
    Code code;
    for (int i = 0; i < 7; ++i)
        for (const unsigned byte : {0x31, 0xc0}) code.push_back(static_cast<std::byte>(byte));
    Code longer = code;
    for (const unsigned byte : {0x55, 0x5d, 0xc3}) code.push_back(static_cast<std::byte>(byte));
    for (const unsigned byte : {0x31, 0xc0, 0x55, 0x5d, 0xc3}) longer.push_back(static_cast<std::byte>(byte));
    CHECK(place(code).offset == 14);
    CHECK(place(longer).is_entry());
}

TEST_CASE("x86-64: a place that a loop passes again is not used") {
    // 0: xor %eax, %eax  2: dec %rdi  5: test %rdi, %rdi  8: je e  a: add %edi, %eax  c: jmp 2..5..8..a  e: ret
    const auto loop_to = [](unsigned distance) {
        return bytes({0x31, 0xc0, 0x48, 0xff, 0xcf, 0x48, 0x85, 0xff, 0x74, 0x04, 0x01, 0xf8, 0xeb, distance, 0xc3});
    };
    CHECK(place(loop_to(0xf4), 0).is_entry());         // to 2
    CHECK(place(loop_to(0xfa), 0).is_entry());         // to 8, the je itself
    CHECK(place(loop_to(0xfc), 0).offset == 8);        // to a, behind it
    CHECK(place(loop_to(0xf2), 0).offset == 8);        // to 0: the entry is passed as often
    CHECK(place(loop_to(0x40), 0).offset == 8);        // a tail call
    CHECK(place(loop_to(0xfd), 0).is_entry());         // into an instruction: something was not code
    CHECK(place(loop_to(0xfc), 0, false).is_entry());  // there may be more jumps
    // A branch to another part of the function, which may jump back.
    CHECK(place(bytes({0x48, 0x85, 0xff, 0x0f, 0x84, 0, 0xf0, 0xff, 0xff, 0xc3})).is_entry());
    CHECK(place(bytes({0x48, 0x85, 0xff, 0x0f, 0x84, 0, 0, 0, 0, 0xc3})).offset == 3);
    // A switch.
    CHECK(place(bytes({0x48, 0x85, 0xff, 0x74, 2, 0xff, 0xe0, 0xc3})).is_entry());
    // Data or unknown code.
    CHECK(place(bytes({0x48, 0x85, 0xff, 0x74, 1, 0xc3, 0xc3, 0x06})).is_entry());
    // glibc jumps over the lock prefix of a process with one thread.
    CHECK(place(bytes({0x48, 0x85, 0xff, 0x74, 1, 0xf0, 0x0f, 0xb1, 0x3e, 0xc3})).offset == 3);
}

TEST_CASE("x86-64: a prologue is passed once, also if the function is incomplete") {
    const Code code = bytes({0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0x57, 0x31, 0xc0, 0xff, 0xe0});  // endbr64; push %r15
    CHECK(place(code).offset == 4);
    CHECK(place(code, 0, false).offset == 4);
    CHECK(place(code, 0, false).instruction_class == push);
    CHECK(place(bytes({0x31, 0xc0, 0x41, 0x57, 0xff, 0xe0}), 0, false).is_entry());
    CHECK(place(bytes({0xf3, 0x0f, 0x1e, 0xfa, 0x74, 0, 0xc3}), 0, false).is_entry());  // a branch may be in a loop
    // The entry itself if the kernel emulates it.
    CHECK(place(code, 0, true, {hint, push}).is_entry());
    CHECK(place(code, 0, true, {hint, push}).instruction_class == hint);
}

TEST_CASE("x86-64: code longer than the limit is incomplete") {
    Code code = bytes({0x48, 0x85, 0xff, 0x74, 0x01});
    code.resize(65536, std::byte{0x90});
    CHECK(place(code).offset == 3);
    code.push_back(std::byte{0x90});
    CHECK(place(code).is_entry());
    CHECK(place({}).is_entry());
}

TEST_CASE("i386: arguments are on the stack") {
    const std::uint32_t esp = 1u << 4;
    // mov 4(%esp), %eax; push %ebx; sub $8, %esp; call
    const Code code = bytes({0x8b, 0x44, 0x24, 4, 0x53, 0x83, 0xec, 8, 0xe8, 0, 1, 0, 0, 0xc3});
    CHECK(place_in(Arch::x86, code, esp, x86_classes).offset == 4);
    CHECK(place_in(Arch::x86, code, esp, {call}).is_entry());
    CHECK(place_in(Arch::x86, code, 0, {call}).offset == 8);
}

TEST_CASE("aarch64: places") {
    const std::uint32_t arguments = argument_registers(Arch::aarch64);
    // bti c; cbz x0; stp x29, x30, [sp, #-48]!; ret; ret
    const Code code = words({0xd503245f, 0xb4000060, 0xa9bd7bfd, 0xd65f03c0, 0xd65f03c0});
    CHECK(place_in(Arch::aarch64, code, arguments, aarch64_classes).offset == 4);
    CHECK(place_in(Arch::aarch64, code, arguments, {nop}).is_entry());
    // stp x29, x30, [sp, #-16]!; mov x29, sp; adrp x19; adrp x0; ret
    const Code prologue = words({0xa9bf7bfd, 0x910003fd, 0xb0000bd3, 0xb0000bc0, 0xd65f03c0});
    CHECK(place_in(Arch::aarch64, prologue, arguments, aarch64_classes).offset == 8);
    CHECK(place_in(Arch::aarch64, prologue, arguments | 1u << 31, aarch64_classes).is_entry());
    CHECK(place_in(Arch::aarch64, prologue, 0, {jump}).offset == 16);
    CHECK(place_in(Arch::aarch64, prologue, arguments, {jump}).is_entry());
    // A retry loop of exclusive accesses: ldaxr w1, [x0]; stlxr w2, w1, [x0]; cbnz w2, 0
    const Code exclusive = words({0x885ffc01, 0x8802fc01, 0x35ffffc2, 0xd65f03c0});
    CHECK(place_in(Arch::aarch64, exclusive, 0, aarch64_classes).is_entry());
}

TEST_CASE("aarch64: never at a literal load") {
    const Code code = words({0x58000041, 0xb4000060, 0xd65f03c0, 0xd65f03c0, 0xd65f03c0});
    CHECK_FALSE(place_probe({Arch::aarch64, code, true}, {.registers = 0xff}, aarch64_classes));
    CHECK_FALSE(place_probe({Arch::aarch64, code, true}, {.entry = true}, {literal_load}));
    CHECK(place_in(Arch::aarch64, code, 1, aarch64_classes).offset == 4);
}

TEST_CASE("32-bit Arm: always the entry") {
    const ProbePlace found =
        place_in(Arch::arm, words({0xe92d4010, 0xeb000000}), argument_registers(Arch::arm), {call});
    CHECK(found.is_entry());
    CHECK_FALSE(found.emulated);
    CHECK(found.instruction_class == other);
}
