// Short instruction sequences, encoded by hand from the machines' manuals. tests/oracle/symbol/test_disassembly.py
// compares whole programs with objdump.
#include "symbol/disassembly/disassembly.h"

#include <catch2/catch.hpp>
#include <elf.h>

#include <initializer_list>
#include <string>

#include "symbol/disassembly/x86_length.h"
#include "symbol/files/code_marks.h"

using namespace flamewire;
using namespace flamewire::symbol;

namespace {

std::string bytes_of(std::initializer_list<unsigned> values) {
    std::string bytes;
    for (const unsigned value : values) bytes += static_cast<char>(value);
    return bytes;
}

std::vector<Instruction> decoded(const std::string& bytes, std::uint16_t machine, std::vector<CodeMark> marks = {},
                                 CodeKind begins = CodeKind::code, std::size_t most = 100) {
    const auto instructions =
        disassemble({as_bytes_view(bytes), 0x1000, machine, false, begins, std::span<const CodeMark>(marks)}, most);
    REQUIRE(instructions);
    return *instructions;
}

std::vector<std::string> texts(const std::vector<Instruction>& instructions) {
    std::vector<std::string> out;
    for (const Instruction& instruction : instructions) out.push_back(instruction.text);
    return out;
}

}  // namespace

TEST_CASE("x86-64 instructions are printed as by objdump, with their targets") {
    const auto code = decoded(bytes_of({0x48, 0x89, 0xe5,                          // mov %rsp,%rbp
                                        0xc7, 0x45, 0x00, 0xff, 0xff, 0xff, 0xff,  // movl $-1,0(%rbp)
                                        0x48, 0x8b, 0x05, 0x10, 0x00, 0x00, 0x00,  // mov 0x10(%rip),%rax
                                        0xe8, 0xe4, 0xff, 0xff, 0xff,              // call to itself - 23
                                        0x75, 0xf7,                                // jne
                                        0xeb, 0x00, 0xff, 0xe0, 0xc3}),
                              EM_X86_64);
    CHECK(texts(code) == std::vector<std::string>{"mov %rsp,%rbp", "movl $0xffffffff,0x0(%rbp)", "mov 0x10(%rip),%rax",
                                                  "call 0xffa", "jne 0x100f", "jmp 0x101a", "jmp *%rax", "ret"});
    CHECK(code[2].reference == 0x1000u + 17 + 0x10);
    CHECK(code[3].flow == Flow::call);
    CHECK(code[3].target == 0xffau);
    CHECK(code[4].flow == Flow::branch);
    CHECK(code[4].target == 0x100fu);
    CHECK(code[5].flow == Flow::jump);
    CHECK(code[6].flow == Flow::jump);
    CHECK_FALSE(code[6].target);
    CHECK(code[7].flow == Flow::leave);
}

TEST_CASE("unknown instructions are shown as bytes, and the next instruction is found") {
    // vpcmpeqb (%rdi),%ymm16,%k0 (EVEX, AVX-512BW), then ret.
    const auto vector = decoded(bytes_of({0x62, 0xf1, 0x7d, 0x20, 0x74, 0x07, 0xc3}), EM_X86_64);
    REQUIRE(vector.size() == 2);
    CHECK(vector[0].size == 6);
    CHECK_FALSE(vector[0].known);
    CHECK(vector[1].text == "ret");
    // 0x06 is not an instruction of 64-bit code.
    const auto wrong = decoded(bytes_of({0x06, 0xc3}), EM_X86_64);
    CHECK(texts(wrong) == std::vector<std::string>{".byte 0x06", "ret"});
    // Truncated in the middle.
    CHECK(texts(decoded(bytes_of({0xe8, 0x00}), EM_X86_64)) == std::vector<std::string>{".byte 0xe8", ".byte 0x00"});
}

TEST_CASE("literal pools in Arm code are data") {
    const std::string code = bytes_of({0x00, 0x48, 0x70, 0x47,  // ldr r0, [pc, #0]; bx lr
                                       0x78, 0x56, 0x34, 0x12,  // .word
                                       0x01, 0x02,              // .short
                                       0x70, 0x47,              // bx lr
                                       0xff});                  // .byte
    const auto found = decoded(
        code, EM_ARM,
        {{0x1000, CodeKind::thumb}, {0x1004, CodeKind::data}, {0x100a, CodeKind::thumb}, {0x100c, CodeKind::data}});
    CHECK(texts(found) == std::vector<std::string>{"ldr r0, [pc, #0]", "bx lr", ".word 0x12345678", ".short 0x0201",
                                                   "bx lr", ".byte 0xff"});
    CHECK(found[0].size == 2);
    CHECK(found[1].flow == Flow::leave);
    CHECK_FALSE(found[3].known);
}

TEST_CASE("Thumb and Arm branches have their targets") {
    // bl +4 (Thumb, wide); beq.n +0; cbz r0, +0
    const auto thumb = decoded(bytes_of({0x00, 0xf0, 0x02, 0xf8, 0xfe, 0xd0, 0x00, 0xb1}), EM_ARM, {}, CodeKind::thumb);
    REQUIRE(thumb.size() == 3);
    CHECK(thumb[0].flow == Flow::call);
    CHECK(thumb[0].target == 0x1008u);  // 0x1000 + 4 + 4
    CHECK(thumb[1].flow == Flow::branch);
    CHECK(thumb[1].target == 0x1004u);
    CHECK(thumb[2].target == 0x100au);
    // b . ; blne .+8
    const auto arm = decoded(bytes_of({0xfe, 0xff, 0xff, 0xea, 0x00, 0x00, 0x00, 0x1b}), EM_ARM);
    CHECK(arm[0].flow == Flow::jump);
    CHECK(arm[0].target == 0x1000u);
    CHECK(arm[1].flow == Flow::call);
    CHECK(arm[1].target == 0x100cu);
}

TEST_CASE("AArch64 moves and atomics have their usual names") {
    const auto code = decoded(bytes_of({0x00, 0x03, 0x80, 0xd2,    // movz x0, #24
                                        0x01, 0x00, 0x80, 0x12,    // movn w1, #0
                                        0x20, 0x00, 0xe2, 0xb8,    // ldaddal w2, w0, [x1]
                                        0x20, 0x7c, 0xa2, 0xc8,    // cas x2, x0, [x1]
                                        0x3f, 0x00, 0x62, 0xf8,    // staddl x2, [x1]
                                        0x40, 0x00, 0x00, 0x54,    // b.eq .+8
                                        0x01, 0x00, 0x00, 0x36,    // tbz w1, #0, .
                                        0x00, 0x00, 0x00, 0x00}),  // udf
                              EM_AARCH64);
    CHECK(texts(code) == std::vector<std::string>{"mov x0, #0x18", "mov w1, #0xffffffff", "ldaddal w2, w0, [x1]",
                                                  "cas x2, x0, [x1]", "staddl x2, [x1]", "b.eq #0x101c",
                                                  "tbz w1, #0, #0x1018", ".inst 0x00000000"});
    CHECK(code[5].target == 0x101cu);
    CHECK(code[6].target == 0x1018u);
    CHECK(code[6].flow == Flow::branch);
    CHECK_FALSE(code[7].known);
}

TEST_CASE("the number of instructions is limited, and unknown machines are reported") {
    CHECK(decoded(std::string(50, '\x90'), EM_X86_64, {}, CodeKind::code, 7).size() == 7);
    CHECK_FALSE(disassemble({as_bytes_view("abcd"), 0, EM_RISCV, false, CodeKind::code, {}}, 10));
    CHECK_FALSE(can_disassemble(EM_S390));
}

TEST_CASE("lengths of x86-64 instructions") {
    const auto length = [](std::initializer_list<unsigned> bytes) {
        return x86_length(as_bytes_view(bytes_of(bytes)));
    };
    CHECK(length({0xc3}) == 1);
    CHECK(length({0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8}) == 10);       // movabs
    CHECK(length({0x66, 0xb8, 1, 2}) == 4);                          // mov $,%ax
    CHECK(length({0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0}) == 9);     // nopw 0x0(%rax,%rax,1)
    CHECK(length({0xf6, 0x05, 0, 0, 0, 0, 1}) == 7);                 // testb $1,0(%rip)
    CHECK(length({0xf6, 0xd8}) == 2);                                // neg %al
    CHECK(length({0xc5, 0xf8, 0x77}) == 3);                          // vzeroupper
    CHECK(length({0xc4, 0xe1, 0xfb, 0x92, 0xc9}) == 5);              // kmovq %rcx,%k1
    CHECK(length({0x62, 0xf3, 0x7d, 0x28, 0x25, 0xc0, 0xff}) == 7);  // vpternlogd $255
    CHECK(length({0x0f, 0x38, 0xf6, 0x04, 0x25, 1, 2, 3, 4}) == 9);  // wrssd, absolute
    CHECK(length({0x06}) == 0);
    CHECK(length({0xe8, 0, 0}) == 0);
    CHECK(length({}) == 0);
    CHECK(length({0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x90}) ==
          0);
}
