// Where functions end, in constructed code. oracle_probes compares the ends of all functions of a few libraries with
// objdump, and test_probes.py the hits with bpftrace's.
#include "agent/probes/function_exits.h"

#include <catch2/catch.hpp>

#include <string_view>
#include <utility>

#include "code_bytes.h"

using namespace flamewire::agent;
using flamewire::unwind::Arch;
using enum InstructionClass;

namespace {

constexpr std::uint64_t base = 0x1000;

ExitSearch search_of(const Code& code, Arch arch = Arch::x86_64) {
    ExitSearch search{.arch = arch};
    search.parts.push_back({base, std::string(reinterpret_cast<const char*>(code.data()), code.size())});
    search.is_function = [](std::uint64_t) { return true; };
    search.entered_from_outside = [] { return false; };
    search.catches = false;
    return search;
}

// Offsets of the ends; of tail calls negative.
std::vector<std::int64_t> offsets(const ExitSearch& search) {
    const FunctionExits found = find_exits(search);
    CHECK(found.problem == "");
    std::vector<std::int64_t> all;
    for (const FunctionExit& exit : found.exits) {
        const auto offset = static_cast<std::int64_t>(exit.address - base);
        all.push_back(exit.tail_call ? -offset : offset);
    }
    return all;
}

std::pair<std::string_view, std::uint64_t> problem(const ExitSearch& search) {
    const FunctionExits found = find_exits(search);
    CHECK(found.exits.empty());
    return {found.problem, found.problem_at - base};
}

using Offsets = std::vector<std::int64_t>;
using Problem = std::pair<std::string_view, std::uint64_t>;

// malloc of glibc 2.36, shortened: a rare error after the result is known.
const Code checked = bytes({
    0x48, 0x89, 0xf8,        //  0: mov %rdi, %rax
    0xa8, 0x0f,              //  3: test $15, %al
    0x75, 0x06,              //  5: jne d
    0x48, 0x83, 0xc4, 0x10,  //  7: add $16, %rsp
    0x5b,                    //  b: pop %rbx
    0xc3,                    //  c: ret
    0xe8, 0, 0, 0, 0,        //  d: call 12
});

}  // namespace

TEST_CASE("returns of x86-64") {
    CHECK(offsets(search_of(bytes({0x85, 0xff, 0x74, 0x01, 0xc3, 0x31, 0xc0, 0xf3, 0xc3}))) == Offsets{4, 7});
    CHECK(offsets(search_of(bytes({0xc2, 0x04, 0x00}), Arch::x86)) == Offsets{0});
    CHECK(problem(search_of(bytes({0xe8, 0, 0, 0, 0, 0x0f, 0x0b}))) == Problem{"no return", 0});
    CHECK(problem(search_of(bytes({0xc3, 0x06}))) == Problem{"an unknown instruction", 1});
    CHECK(problem(search_of(bytes({0x74, 0x01, 0xc3, 0x31, 0xc0}))) ==
          Problem{"code that continues behind its end", 3});
    // A jump into the operand of the mov.
    CHECK(problem(search_of(bytes({0x74, 0x01, 0xb8, 0, 0, 0, 0, 0xc3}))) == Problem{"a jump into an instruction", 0});
    // glibc jumps over the lock prefix.
    CHECK(offsets(search_of(bytes({0x74, 0x01, 0xf0, 0x0f, 0xb1, 0x11, 0xc3}))) == Offsets{6});
}

TEST_CASE("tail calls of x86-64") {
    const Code jump = bytes({0x85, 0xff, 0x75, 0x01, 0xc3, 0xe9, 0, 1, 0, 0});
    CHECK(offsets(search_of(jump)) == Offsets{4, -5});
    CHECK(find_exits(search_of(jump)).exits[1].target == base + 0x10a);
    ExitSearch unknown = search_of(jump);
    unknown.is_function = [](std::uint64_t target) { return target != base + 0x10a; };
    CHECK(problem(unknown) == Problem{"a jump to code that is not known to be a function", 5});
    ExitSearch entered = search_of(jump);
    entered.entered_from_outside = [] { return true; };
    CHECK(problem(entered) == Problem{"a jump to code that is not known to be a function", 5});
    // A part of the function: its return counts, and its jump back does not.
    ExitSearch parts = search_of(jump);
    parts.parts.push_back({base + 0x10a, "\x74\x01\xc3\xe9\xf2\xfe\xff\xff"});
    CHECK(offsets(parts) == Offsets{4, 0x10c});
    // Only an exception leads to the jump.
    const Code landing = bytes({0xc3, 0x89, 0xc7, 0xe9, 0, 1, 0, 0});
    CHECK(offsets(search_of(landing)) == Offsets{0});
    ExitSearch entered_landing = search_of(landing);
    entered_landing.entered_from_outside = [] { return true; };
    CHECK(problem(entered_landing) == Problem{"a jump to code that is not known to be a function", 3});
    // A function of its own that only has such a name.
    ExitSearch outlined = search_of(bytes({0xe8, 0, 1, 0, 0, 0xc3}));
    outlined.parts.push_back({base + 0x105, "\xc3"});
    CHECK(problem(outlined) == Problem{"a call of its own code", 0});
    CHECK(problem(search_of(bytes({0x0f, 0x84, 0, 1, 0, 0, 0xc3}))) == Problem{"a conditional jump to other code", 0});
}

TEST_CASE("indirect jumps of x86-64") {
    // A switch: lea table(%rip), %rdx; movslq (%rdx,%rdi,4), %rax; add %rdx, %rax; jmp *%rax; ret; ret
    const Code relative =
        bytes({0x48, 0x8d, 0x15, 0, 1, 0, 0, 0x48, 0x63, 0x04, 0xba, 0x48, 0x01, 0xd0, 0xff, 0xe0, 0xc3, 0xc3});
    CHECK(offsets(search_of(relative)) == Offsets{16, 17});
    // jmp *0x2000(,%rdi,8), with a table in the file.
    const Code absolute = bytes({0xff, 0x24, 0xfd, 0, 0x20, 0, 0, 0xc3});
    ExitSearch table = search_of(absolute);
    CHECK(problem(table) == Problem{"a jump to an unknown address", 0});
    table.table_entry = [](std::uint64_t at) { return at == 0x2000 ? std::optional(base + 7) : std::nullopt; };
    CHECK(offsets(table) == Offsets{7});
    // goto *labels[n]
    CHECK(problem(search_of(bytes({0xff, 0x24, 0xfa, 0xc3}))) == Problem{"a jump to an unknown address", 0});
    // A virtual function: mov (%rdi), %rax; jmp *8(%rax). And after the epilogue: pop %rbx; jmp *%rax.
    CHECK(offsets(search_of(bytes({0x48, 0x8b, 0x07, 0xff, 0x60, 0x08}))) == Offsets{-3});
    CHECK(offsets(search_of(bytes({0x53, 0x85, 0xff, 0x74, 0x03, 0x5b, 0xff, 0xe0, 0x5b, 0xc3, 0xc3}))) ==
          Offsets{-6, 9, 10});
    CHECK(find_exits(search_of(bytes({0xff, 0xe0}))).exits[0].target == 0);
}

TEST_CASE("cheaper places before a return") {
    ExitSearch search = search_of(checked);
    CHECK(offsets(search) == Offsets{12});
    search.emulated = {conditional_branch};
    search.needs.registers = 1;  // rax
    CHECK(offsets(search) == Offsets{5});
    CHECK(find_exits(search).exits[0].emulated);
    for (const std::uint32_t registers : {1u << 3, 1u << 7}) {  // rbx, rsp
        search.needs.registers = registers;
        CHECK(offsets(search) == Offsets{12});
    }
    search.needs = {.registers = 1, .entry = true};
    CHECK(offsets(search) == Offsets{12});
    search.needs = {.registers = 1};
    search.catches = true;
    CHECK(offsets(search) == Offsets{12});
    search.catches = false;
    search.entered_from_outside = [] { return true; };
    CHECK(offsets(search) == Offsets{12});
    // The other way returns, too.
    Code returns = checked;
    returns.back() = std::byte{0xc3};
    returns[13] = std::byte{0xb8};
    returns.push_back(std::byte{0xc3});
    search = search_of(returns);
    search.emulated = {conditional_branch};
    CHECK(offsets(search) == Offsets{12, 18});
    // A jump to the instruction behind the place.
    Code again = checked;
    again.insert(again.end() - 5, {std::byte{0xeb}, std::byte{0xf8}});
    again[6] = std::byte{0x08};
    search = search_of(again);
    search.emulated = {conditional_branch};
    CHECK(offsets(search) == Offsets{12});
}

TEST_CASE("returns of aarch64") {
    const auto found = [](std::initializer_list<std::uint32_t> code) { return search_of(words(code), Arch::aarch64); };
    CHECK(offsets(found({0xb4000040, 0xd65f03c0, 0xd65f0bff})) == Offsets{4, 8});   // cbz x0, 8; ret; retaa
    CHECK(offsets(found({0xb4000040, 0xd65f03c0, 0x14000100})) == Offsets{4, -8});  // b
    CHECK(problem(found({0xb4000400, 0xd65f03c0})) == Problem{"a conditional jump to other code", 0});
    // add x0, x1, w0, sxth #2; br x0; ret
    CHECK(offsets(found({0x8b20a820, 0xd61f0000, 0xd65f03c0})) == Offsets{8});
    CHECK(problem(found({0xd61f0000, 0xd65f03c0})) == Problem{"a jump to an unknown address", 0});
    // ldp x29, x30, [sp], #16; br x16; ret
    CHECK(offsets(found({0xa8c17bfd, 0xd61f0200, 0xd65f03c0})) == Offsets{-4, 8});
    ExitSearch emulated = found({0xd65f03c0});
    emulated.emulated = {jump};
    CHECK(find_exits(emulated).exits[0].emulated);
}

TEST_CASE("returns of 32-bit Arm") {
    const auto found = [](std::initializer_list<std::uint32_t> code) { return search_of(words(code), Arch::arm); };
    // bxeq lr; pop {r4, pc}
    CHECK(offsets(found({0x012fff1e, 0xe8bd8010})) == Offsets{0, 4});
    // popne {r4, pc}; moveq pc, lr; ldmdb fp, {fp, sp, pc}
    CHECK(offsets(found({0x18bd8010, 0x01a0f00e, 0xe91ba800})) == Offsets{0, 4, 8});
    // A literal after the return looks like one.
    CHECK(offsets(found({0xe59f0000, 0xe12fff1e, 0xe12fff1e})) == Offsets{4});
    // bne to another function; bx r3
    CHECK(offsets(found({0x1a000100, 0xe12fff13})) == Offsets{0, -4});
    CHECK(problem(found({0x979ff103, 0xe12fff1e})) ==
          Problem{"a jump to an unknown address", 0});  // ldrls pc, [pc, r3, lsl #2]
    CHECK(problem(found({0xe08ff003, 0xe12fff1e})) == Problem{"a jump to an unknown address", 0});  // add pc, pc, r3
}

TEST_CASE("branches in code") {
    const auto any = [](const Code& code, Arch arch, std::uint64_t to, bool call) {
        return any_branch(arch, code, base,
                          [&](const Branch& branch) { return branch.to == to && branch.call == call; });
    };
    const Code x86 = bytes({0xe8, 0, 1, 0, 0, 0x90, 0x0f, 0x85, 0xf4, 0xff, 0xff, 0xff, 0xe9, 0xff, 0xff});
    CHECK(any(x86, Arch::x86_64, base + 0x105, true));
    CHECK_FALSE(any(x86, Arch::x86_64, base + 0x105, false));
    CHECK(any(x86, Arch::x86_64, base, false));
    const Code aarch64 = words({0x94000040, 0x17ffffff});
    CHECK(any(aarch64, Arch::aarch64, base + 0x100, true));
    CHECK(any(aarch64, Arch::aarch64, base, false));
    const Code arm = words({0xeb000040, 0x0afffffd});
    CHECK(any(arm, Arch::arm, base + 0x108, true));
    CHECK(any(arm, Arch::arm, base, false));
}
