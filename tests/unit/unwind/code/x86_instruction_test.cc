// Lengths and effects of x86-64 instructions. The bytes and their meaning are as objdump shows them. oracle_unwind_code
// compares the lengths for whole libraries.
#include "unwind/code/x86_instruction.h"

#include <catch2/catch.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

using namespace flamewire::unwind;

namespace {

using Kind = CodeEffect::Kind;

constexpr unsigned rbx = 3, rbp = 6, rsp = 7, r12 = 12, r14 = 14;

std::vector<std::byte> bytes_of(std::initializer_list<unsigned> code) {
    std::vector<std::byte> bytes;
    for (const unsigned byte : code) bytes.push_back(static_cast<std::byte>(byte));
    return bytes;
}

// Also checks that truncated code is not an instruction.
CodeEffect effect_of(std::initializer_list<unsigned> code) {
    auto bytes = bytes_of(code);
    const auto effect = x86_64_effect(bytes);
    REQUIRE(effect);
    CHECK(effect->size == bytes.size());
    bytes.pop_back();
    const auto shorter = x86_64_effect(bytes);
    CHECK((!shorter || shorter->size <= bytes.size()));
    return *effect;
}

void check(std::initializer_list<unsigned> code, Kind kind, std::int64_t bytes = 0, unsigned reg = 0,
           std::uint32_t mask = 0, unsigned base = 0) {
    INFO("code " << std::hex << *code.begin() << " " << *(code.begin() + code.size() - 1));
    const CodeEffect effect = effect_of(code);
    CHECK(effect.kind == kind);
    CHECK(effect.bytes == bytes);
    CHECK(unsigned{effect.reg} == reg);
    CHECK(effect.mask == mask);
    CHECK(unsigned{effect.base} == base);
}

}  // namespace

TEST_CASE("x86-64: the stack pointer moves") {
    check({0x53}, Kind::push, 8, 0, 1u << rbx);                            // push %rbx
    check({0x41, 0x56}, Kind::push, 8, 0, 1u << r14);                      // push %r14
    check({0x41, 0x5c}, Kind::pop, 8, 0, 1u << r12);                       // pop %r12
    check({0x5c}, Kind::pop, 8, 0, 1u << rsp);                             // pop %rsp
    check({0x68, 0x34, 0x12, 0, 0}, Kind::push, 8);                        // push $0x1234
    check({0x6a, 0x7f}, Kind::push, 8);                                    // push $0x7f
    check({0xff, 0x75, 0xf8}, Kind::push, 8);                              // push -8(%rbp)
    check({0x8f, 0x45, 0xf8}, Kind::pop, 8);                               // pop -8(%rbp)
    check({0x9c}, Kind::push, 8);                                          // pushf
    check({0x9d}, Kind::pop, 8);                                           // popf
    check({0x48, 0x83, 0xec, 0x18}, Kind::add, -0x18);                     // sub $0x18, %rsp
    check({0x48, 0x81, 0xec, 0x00, 0x10, 0, 0}, Kind::add, -0x1000);       // sub $0x1000, %rsp
    check({0x48, 0x83, 0xc4, 0x80}, Kind::add, -0x80);                     // add $-0x80, %rsp
    check({0x48, 0x8d, 0x64, 0x24, 0xf8}, Kind::add, -8);                  // lea -8(%rsp), %rsp
    check({0x48, 0x8d, 0xa4, 0x24, 0xd8, 0, 0, 0}, Kind::add, 0xd8);       // lea 0xd8(%rsp), %rsp
    check({0x48, 0x8d, 0x65, 0xd8}, Kind::copy_from, -0x28, rbp);          // lea -0x28(%rbp), %rsp
    check({0x48, 0x89, 0xec}, Kind::copy_from, 0, rbp);                    // mov %rbp, %rsp
    check({0x48, 0x8b, 0xe5}, Kind::copy_from, 0, rbp);                    // the same
    check({0x48, 0x89, 0xe5}, Kind::copy_to, 0, rbp);                      // mov %rsp, %rbp
    check({0x48, 0x8d, 0x6c, 0x24, 0x10}, Kind::copy_to, 0x10, rbp);       // lea 0x10(%rsp), %rbp
    check({0x48, 0x83, 0xe4, 0xe0}, Kind::compute_sp);                     // and $-0x20, %rsp
    check({0x48, 0x29, 0xc4}, Kind::compute_sp);                           // sub %rax, %rsp
    check({0x48, 0x8d, 0x24, 0xc4}, Kind::compute_sp);                     // lea (%rsp,%rax,8), %rsp
    check({0x48, 0x8b, 0x64, 0x24, 0x40}, Kind::load, 0x40, rsp, 0, rsp);  // mov 0x40(%rsp), %rsp
    check({0xc9}, Kind::leave, 8, rbp, 1u << rbp);                         // leave
    check({0xc3}, Kind::pop, 8, 0, 1u << 16);                              // ret
    check({0xf3, 0xc3}, Kind::pop, 8, 0, 1u << 16);                        // repz ret
}

TEST_CASE("x86-64: saved registers are moved and overwritten") {
    check({0x48, 0x89, 0x5c, 0x24, 0x08}, Kind::store, 8, rbx, 0, rsp);  // mov %rbx, 8(%rsp)
    check({0x4c, 0x89, 0x65, 0xf0}, Kind::store, -0x10, r12, 0, rbp);    // mov %r12, -0x10(%rbp)
    check({0x48, 0x8b, 0x5c, 0x24, 0x08}, Kind::load, 8, rbx, 0, rsp);   // mov 8(%rsp), %rbx
    check({0x48, 0x8b, 0x1c, 0xc4}, Kind::forget, 0, rbx);               // mov (%rsp,%rax,8), %rbx
    check({0x48, 0x8b, 0x1d, 0, 0, 0, 0}, Kind::forget, 0, rbx);         // mov 0(%rip), %rbx
    check({0x48, 0x89, 0xc3}, Kind::forget, 0, rbx);                     // mov %rax, %rbx
    check({0x89, 0xc3}, Kind::forget, 0, rbx);                           // mov %eax, %ebx
    check({0x48, 0x83, 0xc3, 0x08}, Kind::add_to, 8, rbx);               // add $8, %rbx
    check({0x48, 0x8d, 0x5b, 0x08}, Kind::add_to, 8, rbx);               // lea 8(%rbx), %rbx
    check({0x48, 0x01, 0xc3}, Kind::forget, 0, rbx);                     // add %rax, %rbx
    check({0x31, 0xdb}, Kind::forget, 0, rbx);                           // xor %ebx, %ebx
    check({0xbb, 1, 0, 0, 0}, Kind::forget, 0, rbx);                     // mov $1, %ebx
    check({0x48, 0xbb, 1, 2, 3, 4, 5, 6, 7, 8}, Kind::forget, 0, rbx);   // movabs
    check({0x0f, 0xb6, 0xd8}, Kind::forget, 0, rbx);                     // movzbl %al, %ebx
    check({0x48, 0x0f, 0x44, 0xd8}, Kind::forget, 0, rbx);               // cmove %rax, %rbx
    check({0x48, 0x39, 0xe5}, Kind::none);                               // cmp %rsp, %rbp
    check({0x48, 0x85, 0xdb}, Kind::none);                               // test %rbx, %rbx
    check({0x48, 0x87, 0x1f}, Kind::forget, 0, rbx);                     // xchg %rbx, (%rdi)
    check({0x48, 0x92}, Kind::forget, 0, 1);                             // xchg %rax, %rdx
}

TEST_CASE("x86-64: targets of jumps and calls") {
    check({0xe8, 0xfb, 0xff, 0xff, 0xff}, Kind::call);              // call
    check({0xff, 0xd0}, Kind::call);                                // call *%rax
    check({0xff, 0x50, 0x08}, Kind::call);                          // call *8(%rax)
    check({0xff, 0x94, 0xc4, 1, 0, 0, 0}, Kind::call);              // call *1(%rsp,%rax,8)
    check({0xeb, 0xfe}, Kind::jump, 0);                             // jmp .
    check({0xe9, 0x00, 0x01, 0, 0}, Kind::jump, 0x105);             // jmp .+0x105
    check({0x75, 0x02}, Kind::branch, 4);                           // jne .+4
    check({0x0f, 0x84, 0xf4, 0xff, 0xff, 0xff}, Kind::branch, -6);  // je .-6
    check({0xe3, 0x02}, Kind::branch, 4);                           // jrcxz
    check({0xff, 0xe2}, Kind::indirect);                            // jmp *%rdx
    check({0xff, 0x25, 0, 0, 0, 0}, Kind::indirect);                // jmp *0(%rip)
    check({0x3e, 0xff, 0xe0}, Kind::indirect);                      // notrack jmp *%rax
    check({0xc2, 0x08, 0x00}, Kind::other);                         // ret $8
    check({0xcc}, Kind::other);                                     // int3
    check({0x0f, 0x0b}, Kind::other);                               // ud2
    check({0xf4}, Kind::other);                                     // hlt
    check({0x0f, 0x05}, Kind::none);                                // syscall
}

TEST_CASE("x86-64: lengths of instructions that leave the stack unchanged") {
    check({0x90}, Kind::none);                                         // nop
    check({0xf3, 0x0f, 0x1e, 0xfa}, Kind::none);                       // endbr64
    check({0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0}, Kind::none);  // nopw
    check({0xf6, 0xc3, 0x01}, Kind::none);                             // test $1, %bl
    check({0xf6, 0xd3}, Kind::none);                                   // not %bl
    check({0x66, 0xf7, 0xc3, 1, 0}, Kind::none);                       // test $1, %bx
    check({0x66, 0x48, 0xf7, 0xc3, 1, 0, 0, 0}, Kind::none);           // test $1, %rbx: 64 bits in spite of the prefix
    check({0xf7, 0xe3}, Kind::none);                                   // mul %ebx
    check({0x66, 0xc7, 0x04, 0x24, 1, 0}, Kind::none);                 // movw $1, (%rsp)
    check({0xa3, 1, 2, 3, 4, 5, 6, 7, 8}, Kind::none);                 // mov %eax, 0x0807060504030201
    check({0x67, 0xa3, 1, 2, 3, 4}, Kind::none);                       // mov %eax, 0x04030201
    check({0x0f, 0x3a, 0x0f, 0xc1, 0x08}, Kind::none);                 // palignr $8
    check({0x66, 0x0f, 0x38, 0x00, 0x05, 0, 0, 0, 0}, Kind::none);     // pshufb 0(%rip)
    check({0xc5, 0xf8, 0x77}, Kind::none);                             // vzeroupper
    check({0xc5, 0xfd, 0x6f, 0x44, 0x24, 0x40}, Kind::none);           // vmovdqa 0x40(%rsp), %ymm0
    check({0xc4, 0xe3, 0xfd, 0x00, 0xc0, 0x05}, Kind::none);           // vpermq $5
    check({0x62, 0xf1, 0x7d, 0x48, 0x6f, 0x44, 0x24, 0x01}, Kind::none);  // vmovdqa32 0x40(%rsp), %zmm0
    check({0x62, 0xf3, 0xfd, 0x48, 0x00, 0xc0, 0x05}, Kind::none);        // vpermq $5, %zmm0
    check({0x8f, 0xe8, 0x78, 0xc0, 0xc1, 0x02}, Kind::none);              // vprotb $2 (XOP)
    check({0x66, 0x0f, 0x78, 0xc1, 0x02, 0x03}, Kind::none);              // extrq $3, $2 (SSE4a)
}

TEST_CASE("x86-64: bytes that are not an instruction") {
    const auto effect = [](std::initializer_list<unsigned> code) { return x86_64_effect(bytes_of(code)); };
    CHECK_FALSE(effect({}));
    CHECK_FALSE(effect({0x48}));                    // a prefix alone
    CHECK_FALSE(effect({0xe8, 1, 2, 3}));           // truncated
    CHECK_FALSE(effect({0x8b, 0x84, 0x24, 1, 2}));  // truncated in the displacement
    CHECK_FALSE(effect({0xc5, 0xf8}));
    CHECK_FALSE(effect({0x06}));        // push %es, of 32-bit mode
    CHECK_FALSE(effect({0x0f, 0x04}));  // nothing
    CHECK_FALSE(effect({0xc4, 0xe0, 0x78, 0x10, 0xc0}));
    // Sixteen prefixes are one too many.
    CHECK_FALSE(
        effect({0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x90}));
}
