// Rows from code alone. The code is gcc 12's for arm-linux-gnueabihf, as objdump shows it. The rows are derived by hand
// from what the code pushes and pops.
#include "unwind/code/arm_return.h"

#include <catch2/catch.hpp>

#include <map>
#include <vector>

using namespace flamewire::unwind;
using Rule = RegisterRule::Kind;
using Saved = std::map<unsigned, std::int64_t>;

namespace {

constexpr unsigned sp = 13, lr = 14;

struct Program {
    std::map<std::uint64_t, std::uint16_t> halves;

    void thumb(std::uint64_t at, std::initializer_list<unsigned> code) {
        for (const unsigned half : code) {
            halves[at] = static_cast<std::uint16_t>(half);
            at += 2;
        }
    }
    void arm(std::uint64_t at, std::initializer_list<std::uint32_t> code) {
        for (const std::uint32_t word : code) {
            thumb(at, {word & 0xffff, word >> 16});
            at += 4;
        }
    }
    [[nodiscard]] std::optional<FrameRow> row(std::uint64_t address, bool return_address = false) const {
        const CodeReader read = [this](std::uint64_t place, std::span<std::byte> out) {
            for (std::byte& byte : out) {
                const auto half = halves.find(place & ~std::uint64_t{1});
                if (half == halves.end()) return false;
                byte = static_cast<std::byte>(half->second >> (place % 2 * 8));
                ++place;
            }
            return true;
        };
        return row_by_arm_code(read, address, return_address);
    }
    // Expects "CFA = base + offset" and these registers in memory. Without lr among them, the function returns through
    // lr.
    void check(std::uint64_t address, bool return_address, unsigned base, std::int64_t offset,
               const Saved& saved) const {
        INFO("at " << std::hex << address);
        const auto found = row(address, return_address);
        REQUIRE(found);
        CHECK(found->start == address);
        CHECK(found->end == address + 1);
        CHECK(unsigned{found->cfa_register} == base);
        CHECK(found->cfa_offset == offset);
        CHECK(unsigned{found->return_column} == lr);
        for (unsigned number = 4; number <= lr; ++number) {
            if (number == 12 || number == sp) continue;
            const auto place = saved.find(number);
            INFO("r" << number);
            CHECK(found->registers[number].kind == (place == saved.end() ? Rule::same : Rule::at_cfa));
            if (place != saved.end()) CHECK(found->registers[number].offset == place->second);
        }
    }
};

// push {r4, lr}; sub sp, #8; mov r4, r0; bl; cbz r0, +; add r0, r4; +: add sp, #8; pop {r4, pc}
Program with_frame() {
    Program program;
    program.thumb(0x8000, {0xb510, 0xb082, 0x4604, 0xf000, 0xf900, 0xb100, 0x4420, 0xb002, 0xbd10, 0xbf00});
    return program;
}

}  // namespace

TEST_CASE("A frame from the epilogue that removes it") {
    const Program program = with_frame();
    program.check(0x8000, false, sp, 0, {});                    // nothing has been pushed yet: returns through lr
    program.check(0x8002, false, sp, 8, {{4, -8}, {lr, -4}});   // after the push
    program.check(0x8004, false, sp, 16, {{4, -8}, {lr, -4}});  // after the sub
    program.check(0x800a, true, sp, 16, {{4, -8}, {lr, -4}});   // after the call
    program.check(0x8010, false, sp, 8, {{4, -8}, {lr, -4}});   // after the add, at the pop
    CHECK_FALSE(program.row(0x8012));                           // there is nothing after the function
    CHECK_FALSE(program.row(0x8000, true));                     // no call ends at a function's start
}

TEST_CASE("A leaf returns through lr, its callers do not") {
    Program program;
    program.thumb(0x8000, {0x3001, 0xd1fd, 0x4770, 0xbf00});  // adds r0, #1; bne back; bx lr
    program.check(0x8002, false, sp, 0, {});
    CHECK_FALSE(program.row(0x8002, true));
}

TEST_CASE("The stack pointer is restored from the frame pointer") {
    Program program;
    // push {r3, r4, r7, lr}; add r7, sp, #0; sub.w sp, sp, r3; bl; mov sp, r7; pop {r3, r4, r7, pc}
    program.thumb(0x8000, {0xb598, 0xaf00, 0xebad, 0x0d03, 0xf000, 0xf900, 0x46bd, 0xbd98});
    program.check(0x800c, true, 7, 16, {{4, -12}, {7, -8}, {lr, -4}});
    program.check(0x8004, false, 7, 16, {{4, -12}, {7, -8}, {lr, -4}});
    program.check(0x8002, false, sp, 16, {{4, -12}, {7, -8}, {lr, -4}});
    // -O0: sub sp, #8; add r7, sp, #0 (...) adds r7, #8; mov sp, r7; ldr.w r7, [sp], #4; bx lr
    program.thumb(0x9000, {0xb480, 0xb083, 0xaf00, 0x6078, 0x370c, 0x46bd, 0xf85d, 0x7b04, 0x4770, 0xbf00});
    program.check(0x9006, false, 7, 16, {{7, -4}});
    program.check(0x900c, false, sp, 4, {{7, -4}});
}

TEST_CASE("ARM code is distinguished from Thumb code") {
    Program program;
    // push {fp, lr}; add fp, sp, #4; sub sp, sp, #24; str; mov; bl; mov; nop; sub sp, fp, #4; pop {fp, pc}; constants
    program.arm(0x8000, {0xe92d4800, 0xe28db004, 0xe24dd018, 0xe50b0018, 0xe3a02000, 0xebfffda2, 0xe1a02000, 0xe320f000,
                         0xe24bd004, 0xe8bd8800, 0x00059774, 0x00059764});
    program.check(0x8004, false, sp, 8, {{11, -8}, {lr, -4}});
    program.check(0x8018, true, 11, 4, {{11, -8}, {lr, -4}});
    program.check(0x8024, false, sp, 8, {{11, -8}, {lr, -4}});  // mostly constants follow
    // strlen's saved pair, in Thumb code full of data: strd r4, r5, [sp, #-8]! ... ldrd r4, r5, [sp], #8; bx lr
    program.thumb(0x9000, {0xe96d, 0x4502, 0xfa82, 0xf24c, 0xfaa4, 0xf28c, 0xe8fd, 0x4502, 0x4770, 0xbf00});
    program.check(0x9004, false, sp, 8, {{4, -8}, {5, -4}});
}

TEST_CASE("Tail calls") {
    Program program;
    // push {r4, lr}; bl; pop {r4, lr}; b.w to a function that has its own frame
    program.thumb(0x8000, {0xb510, 0xf000, 0xf900, 0xe8bd, 0x4010, 0xf000, 0xb878});
    program.thumb(0x8100, {0xb538, 0xf000, 0xf900, 0xbd38});  // push {r3, r4, r5, lr}; bl; pop {r3, r4, r5, pc}
    program.check(0x8006, true, sp, 8, {{4, -8}, {lr, -4}});
    // ldr r3, [r0]; bx r3: jumps to an unknown place, which returns to the caller
    program.thumb(0x9000, {0x6803, 0x4718, 0xbf00, 0xbf00});
    program.check(0x9000, false, sp, 0, {});
    // To a function outside of the code that is read.
    program.arm(0xa000,
                {0xe1a00001, 0xe1a01002, 0xe2800001, 0xe2800001, 0xea0fffff, 0xe1a00000, 0xe1a00000, 0xe1a00000});
    program.check(0xa000, false, sp, 0, {});
}

TEST_CASE("A function that never returns is unwound by its prologue") {
    Program program;
    // push {r3, lr}; ldr; add; 1: bl; b 1
    program.thumb(0x8000, {0xb508, 0x6818, 0x4418, 0xf000, 0xf900, 0xe7fb, 0xbf00, 0xbf00});
    program.check(0x800a, true, sp, 8, {{lr, -4}});
    program.check(0x8002, false, sp, 8, {{lr, -4}});
    program.check(0x8000, false, sp, 0, {});
    // A function that ends in a call is followed by another function. That function's push of lr must not count as its
    // own.
    program.thumb(0x9000, {0xb570, 0xf000, 0xf900, 0xb510, 0xf000, 0xf900, 0xbd10, 0xbf00});
    program.check(0x9006, true, sp, 16, {{4, -16}, {5, -12}, {6, -8}, {lr, -4}});
}

TEST_CASE("Rows that the code does not determine are not guessed") {
    Program program;
    program.thumb(0x8000, {0xe8d0, 0xf000, 0xbf00, 0xbf00});  // a switch: its destinations are in a table
    CHECK_FALSE(program.row(0x8000));
    program.thumb(0x9000, {0xb082, 0x4770, 0xbf00, 0xbf00});  // returns with more on the stack than at its start
    CHECK_FALSE(program.row(0x9000));
    CHECK_FALSE(program.row(0xc000));  // no code
}
