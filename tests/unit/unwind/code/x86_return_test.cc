// Rows from x86-64 code alone. The code is from Debian's libraries, as objdump shows it. The rows are derived by hand
// from what it pushes and pops. oracle_unwind_steps_x86_64 compares every instruction of running programs.
#include "unwind/code/x86_return.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "unwind/arch/arch.h"
#include "unwind/tables/rule.h"

using namespace flamewire::unwind;
using Saving = RegisterRule::Kind;
using Saved = std::map<unsigned, std::int64_t>;

namespace {

constexpr std::uint64_t start = 0x8000;
constexpr unsigned rcx = 2, rbx = 3, rbp = 6, rsp = 7, r12 = 12, rip = 16;
const std::vector<unsigned> preserved{rbx, rbp, r12, 13, 14, 15};

struct Program {
    std::vector<std::byte> bytes;
    Program(std::initializer_list<unsigned> code) {
        for (const unsigned byte : code) bytes.push_back(static_cast<std::byte>(byte));
    }
    [[nodiscard]] std::optional<FrameRow> row(std::uint64_t offset, bool return_address = false) const {
        const CodeReader read = [this](std::uint64_t address, std::span<std::byte> out) {
            if (address < start || address - start + out.size() > bytes.size()) return false;
            std::memcpy(out.data(), bytes.data() + (address - start), out.size());
            return true;
        };
        return row_by_x86_64_code(read, start + offset, return_address);
    }
    // Expects "CFA = base + offset", the return address below it, and these registers in memory.
    void check(std::uint64_t offset, bool return_address, unsigned base, std::int64_t cfa,
               const Saved& saved = {}) const {
        INFO("at " << std::hex << offset);
        const auto found = row(offset, return_address);
        REQUIRE(found);
        CHECK_FALSE(found->cfa_is_expression);
        CHECK(unsigned{found->cfa_register} == base);
        CHECK(found->cfa_offset == cfa);
        check_saved(*found, saved);
    }
    static void check_saved(const FrameRow& found, const Saved& saved) {
        CHECK(unsigned{found.return_column} == rip);
        CHECK(found.registers[rip].kind == Saving::at_cfa);
        CHECK(found.registers[rip].offset == -8);
        for (const unsigned number : preserved) {
            INFO("register " << number);
            const auto place = saved.find(number);
            CHECK(found.registers[number].kind == (place == saved.end() ? Saving::same : Saving::at_cfa));
            if (place != saved.end()) CHECK(found.registers[number].offset == place->second);
        }
    }
};

}  // namespace

TEST_CASE("x86-64: a frame from the epilogue that removes it") {
    // push %rbx; sub $0x10, %rsp; mov %edi, %ebx; call; test; je +2; add %eax, %ebx; add $0x10, %rsp; pop %rbx; ret
    const Program program{0x53, 0x48, 0x83, 0xec, 0x10, 0x89, 0xfb, 0xe8, 0,    0,    0,    0,
                          0x85, 0xc0, 0x74, 0x02, 0x01, 0xc3, 0x48, 0x83, 0xc4, 0x10, 0x5b, 0xc3};
    program.check(0, false, rsp, 8);
    program.check(1, false, rsp, 16, {{rbx, -16}});
    program.check(5, false, rsp, 32, {{rbx, -16}});
    program.check(12, true, rsp, 32, {{rbx, -16}});
    program.check(22, false, rsp, 16, {{rbx, -16}});
    program.check(23, false, rsp, 8);
    CHECK_FALSE(program.row(24));
}

TEST_CASE("x86-64: registers that are saved by mov") {
    // GMP's squaring function: add $-0x28, %rsp; mov %rbx, 0x20(%rsp); mov %rbp, 0x18(%rsp); nop;
    // mov 0x18(%rsp), %rbp; mov 0x20(%rsp), %rbx; add $0x28, %rsp; ret
    const Program program{0x48, 0x83, 0xc4, 0xd8, 0x48, 0x89, 0x5c, 0x24, 0x20, 0x48, 0x89, 0x6c, 0x24, 0x18, 0x90,
                          0x48, 0x8b, 0x6c, 0x24, 0x18, 0x48, 0x8b, 0x5c, 0x24, 0x20, 0x48, 0x83, 0xc4, 0x28, 0xc3};
    program.check(0, false, rsp, 8);
    program.check(14, false, rsp, 48, {{rbx, -16}, {rbp, -24}});
    program.check(20, false, rsp, 48, {{rbx, -16}});
}

TEST_CASE("x86-64: the stack is aligned") {
    // x264: mov %rsp, %rcx; and $-0x20, %rsp; sub $0x60, %rsp; nop; mov %rcx, %rsp; vzeroupper; ret
    const Program in_register{0x48, 0x89, 0xe1, 0x48, 0x83, 0xe4, 0xe0, 0x48, 0x83, 0xec,
                              0x60, 0x90, 0x48, 0x89, 0xcc, 0xc5, 0xf8, 0x77, 0xc3};
    in_register.check(0, false, rsp, 8);
    in_register.check(11, false, rcx, 8);
    CHECK_FALSE(in_register.row(11, true));  // a call does not keep rcx

    // libjpeg-turbo: push %rbp; mov %rsp, %rax; sub $4, %rsp; and $-0x20, %rsp; mov %rax, (%rsp); mov %rsp, %rbp;
    // lea -0x40(%rbp), %rsp; nop; mov %rbp, %rsp; pop %rsp; pop %rbp; ret
    const Program in_memory{0x55, 0x48, 0x89, 0xe0, 0x48, 0x83, 0xec, 0x04, 0x48, 0x83, 0xe4, 0xe0, 0x48, 0x89, 0x04,
                            0x24, 0x48, 0x89, 0xe5, 0x48, 0x8d, 0x65, 0xc0, 0x90, 0x48, 0x89, 0xec, 0x5c, 0x5d, 0xc3};
    const auto row = in_memory.row(23);
    REQUIRE(row);
    CHECK(row->cfa_is_expression);
    // DW_OP_breg6 0, plus_uconst 0, deref, plus_uconst 16
    CHECK(row->expressions == std::string("\x76\x00\x23\x00\x06\x23\x10", 7));
    Program::check_saved(*row, {{rbp, -16}});
    CHECK(compile_rule(*row, arch_x86_64).kind == Rule::Kind::row);
}

TEST_CASE("x86-64: leave") {
    // push %rbp; mov %rsp, %rbp; sub $0x10, %rsp; nop; leave; ret
    const Program program{0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10, 0x90, 0xc9, 0xc3};
    program.check(1, false, rsp, 16, {{rbp, -16}});
    program.check(8, false, rbp, 16, {{rbp, -16}});
    program.check(8, true, rbp, 16, {{rbp, -16}});
    program.check(10, false, rsp, 8);
}

TEST_CASE("x86-64: indirect jumps through a register") {
    // A loop of GMP: push %r12; 1: nop; jmp *%rax; nop; pop %r12; ret. The stack is as deep after the jump as before
    // it.
    const Program loop{0x41, 0x54, 0x90, 0xff, 0xe0, 0x90, 0x41, 0x5c, 0xc3};
    loop.check(2, false, rsp, 16, {{r12, -16}});
    // A tail call, followed by another function: push %rbx; pop %rbx; jmp *%rax; nop; push %rbp; pop %rbp; ret
    const Program tail_call{0x53, 0x5b, 0xff, 0xe0, 0x90, 0x55, 0x5d, 0xc3};
    tail_call.check(0, false, rsp, 8);
    tail_call.check(1, false, rsp, 16, {{rbx, -16}});
    // With nothing after it.
    const Program last{0x53, 0x5b, 0xff, 0xe0};
    last.check(1, false, rsp, 16, {{rbx, -16}});
    // To code outside of the range that is read: pop %rbx; jmp .+0x100000
    const Program far_away{0x5b, 0xe9, 0xfb, 0xff, 0x0f, 0x00};
    far_away.check(0, false, rsp, 16, {{rbx, -16}});
}

TEST_CASE("x86-64: a function that never returns is followed by another function") {
    // push %rbp; mov %rsp, %rbp; sub $0x10, %rsp; call; then push %rbp; mov %rsp, %rbp; nop; leave; ret
    const Program program{0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10, 0xe8, 0,
                          0,    0,    0,    0x55, 0x48, 0x89, 0xe5, 0x90, 0xc9, 0xc3};
    program.check(0, false, rsp, 8);                 // found from its prologue
    program.check(1, false, rsp, 16, {{rbp, -16}});  // between the two
    CHECK_FALSE(program.row(4));
    CHECK_FALSE(program.row(13, true));
    program.check(13, false, rsp, 8);
    // call; sub $8, %rsp; ret: it would return with more on the stack than at its start.
    const Program less{0xe8, 0, 0, 0, 0, 0x48, 0x83, 0xec, 0x08, 0xc3};
    CHECK_FALSE(less.row(0));
}

TEST_CASE("x86-64: calls before return addresses") {
    const auto follows = [](std::initializer_list<unsigned> code) {
        std::vector<std::byte> bytes(16, std::byte{0x90});
        for (const unsigned byte : code) bytes.push_back(static_cast<std::byte>(byte));
        const std::uint64_t end = bytes.size();
        bytes.resize(end + 16, std::byte{0x90});
        const MemoryReader read = [&](std::uint64_t address, std::size_t size) -> std::optional<std::uint64_t> {
            std::uint64_t value = 0;
            if (address + size > bytes.size()) return {};
            std::memcpy(&value, bytes.data() + address, size);
            return value;
        };
        return follows_x86_64_call(end, read);
    };
    CHECK(follows({0xe8, 1, 2, 3, 4}));
    CHECK(follows({0xff, 0xd0}));
    CHECK(follows({0x41, 0xff, 0xd4}));
    CHECK(follows({0xff, 0x50, 0x08}));
    CHECK(follows({0xff, 0x54, 0x24, 0x08}));
    CHECK(follows({0xff, 0x15, 1, 2, 3, 4}));
    CHECK(follows({0x41, 0xff, 0x94, 0x24, 1, 2, 3, 4}));
    CHECK_FALSE(follows({0xe9, 1, 2, 3, 4}));  // jmp
    CHECK_FALSE(follows({0xff, 0xe0}));
    CHECK_FALSE(follows({0x90}));
}
