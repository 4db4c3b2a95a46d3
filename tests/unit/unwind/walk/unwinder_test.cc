// Walks over stacks and tables written by hand. Module 1 is mapped at bias 0x400000. Each test defines its functions.
#include "unwind/walk/unwinder.h"

#include <catch2/catch.hpp>

#include "../fake_modules.h"

using namespace flamewire;
using namespace flamewire::unwind;
using namespace flamewire::unwind::fake;
using Kind = RegisterRule::Kind;
using Pcs = std::vector<std::uint64_t>;

namespace {

constexpr std::uint8_t rax = 0, rbx = 3, rbp = 6, rsp = 7, r10 = 10, rip = 16;
constexpr std::uint64_t bias = 0x400000;
constexpr std::uint64_t stack_at = 0x7ffc0000;

CodePiece piece(ModuleId module = 1, std::uint64_t at = bias) { return {at, at + 0x100000, module, at}; }

// A leaf (rbx pushed), a caller with a frame pointer, and the outermost function.
FrameRow leaf_row() { return RowIs(0x1000, 0x1100, rsp, 16, rip).saved(rip, -8).saved(rbx, -16); }
FrameRow middle_row() { return RowIs(0x1100, 0x1200, rbp, 16, rip).saved(rip, -8).saved(rbp, -16); }
FrameRow root_row() { return RowIs(0x1200, 0x1300, rsp, 8, rip).kind(rip, Kind::undefined); }

// The leaf's frame is at stack_at (2 words). The middle one's extends to stack_at + 64.
Stack simple_stack() {
    Stack stack(stack_at, 9);
    stack.put(stack_at, 0xb0b).put(stack_at + 8, bias + 0x1150);
    stack.put(stack_at + 48, 0xf00).put(stack_at + 56, bias + 0x1250);
    return stack;
}
Registers simple_start() {
    return registers_of(Arch::x86_64, {{rip, bias + 0x1050}, {rsp, stack_at}, {rbp, stack_at + 48}, {rbx, 1}});
}

}  // namespace

TEST_CASE("A walk follows the rules up to the outermost frame") {
    World world;
    modules()[1].rows = {leaf_row(), middle_row(), root_row()};
    Space space({piece()});
    const Stack stack = simple_stack();
    REQUIRE(world.walk(simple_start(), stack.copy(), space) == StopReason::root);
    const std::vector<Frame> expected{
        {bias + 0x1050, stack_at, stack_at + 48, FoundBy::registers, false, false},
        // The leaf has no rule for rbp, so rbp is still the caller's.
        {bias + 0x1150, stack_at + 16, stack_at + 48, FoundBy::rule, true, true, stack_at + 8},
        {bias + 0x1250, stack_at + 64, 0xf00, FoundBy::rule, true, false, stack_at + 56},
    };
    CHECK(world.frames == expected);
    CHECK(space.lookups == 1);  // all frames are in one piece

    const Unwinder::Counts& counts = world.unwinder.counts();
    CHECK(counts.walks == 1);
    CHECK(counts.frames == 3);
    CHECK(counts.stopped[static_cast<std::size_t>(StopReason::root)] == 1);
    CHECK(counts.found[static_cast<std::size_t>(FoundBy::rule)] == 2);
    CHECK(counts.found[static_cast<std::size_t>(FoundBy::registers)] == 1);
    CHECK(counts.rules_compiled == 3);
}

TEST_CASE("Rules are shared by address spaces, and dropped with their module") {
    World world;
    modules()[1].rows = {leaf_row(), middle_row(), root_row()};
    Space space({piece()});
    const Stack stack = simple_stack();
    REQUIRE(world.walk(simple_start(), stack.copy(), space) == StopReason::root);

    constexpr std::uint64_t elsewhere = 0x7f0000000000;
    Space other({piece(1, elsewhere)});
    Stack moved = simple_stack();
    moved.put(stack_at + 8, elsewhere + 0x1150).put(stack_at + 56, elsewhere + 0x1250);
    Registers start = simple_start();
    start.set(rip, elsewhere + 0x1050);
    REQUIRE(world.walk(start, moved.copy(), other) == StopReason::root);
    CHECK(world.pcs() == Pcs{elsewhere + 0x1050, elsewhere + 0x1150, elsewhere + 0x1250});
    CHECK(world.unwinder.counts().rules_compiled == 3);
    CHECK(modules()[1].opened == 1);

    modules()[1].rows = {root_row()};
    CHECK(world.walk(simple_start(), stack.copy(), space) == StopReason::root);
    CHECK(world.frames.size() == 3);
    world.unwinder.forget(1);
    CHECK(world.walk(simple_start(), stack.copy(), space) == StopReason::root);
    CHECK(modules()[1].opened == 2);
    REQUIRE(world.frames.size() == 2);  // no row has 0x1050 now: by frame pointer
    CHECK(world.frames[1].found_by == FoundBy::frame_pointer);
}

TEST_CASE("A return address is looked up at the call before it, a pc at its own address") {
    World world;
    // The function before 0x1200 ends with a call that does not return. Another function, with other rules, begins at
    // 0x1200.
    modules()[1].rows = {RowIs(0x1100, 0x1200, rsp, 24, rip).saved(rip, -8),
                         RowIs(0x1200, 0x1300, rsp, 8, rip).saved(rip, -8),
                         RowIs(0x1300, 0x1400, rsp, 8, rip).kind(rip, Kind::undefined)};
    Space space({piece()});
    Stack stack(stack_at, 8);
    // A leaf at the first instruction of the second function, called at the end of the first one.
    stack.put(stack_at, bias + 0x1200).put(stack_at + 8 + 16, bias + 0x1310);
    const Registers start = registers_of(Arch::x86_64, {{rip, bias + 0x1200}, {rsp, stack_at}});
    CHECK(world.walk(start, stack.copy(), space) == StopReason::root);
    CHECK(world.pcs() == Pcs{bias + 0x1200, bias + 0x1200, bias + 0x1310});
    CHECK(world.frames[2].sp == stack_at + 32);
}

TEST_CASE("Registers that a call clobbers are unknown in the caller") {
    World world;
    modules()[1].rows = {leaf_row(), RowIs(0x1100, 0x1200, rax, 16, rip).saved(rip, -8), root_row()};
    Space space({piece()});
    const Stack stack = simple_stack();
    Registers start = simple_start();
    start.set(rax, stack_at + 48);
    CHECK(world.walk(start, stack.copy(), space) == StopReason::no_info);
    CHECK(world.frames.size() == 2);
    // In the interrupted frame itself, rax is known.
    start.set(rip, bias + 0x1150);
    CHECK(world.walk(start, stack.copy(), space) == StopReason::root);
    REQUIRE(world.frames.size() == 2);
    CHECK(world.frames[1].pc == bias + 0x1250);
}

TEST_CASE("Where memory ends, the reason distinguishes the copy's end from the stack's") {
    World world;
    modules()[1].rows = {leaf_row(), RowIs(0x1100, 0x1200, rbp, 16, rip).saved(rip, -8).saved(rbp, -16), root_row()};
    Space space({piece()});
    Stack stack(stack_at, 4);
    stack.put(stack_at + 8, bias + 0x1150);
    CHECK(world.walk(simple_start(), stack.copy(true), space) == StopReason::truncated_copy);
    CHECK(world.pcs() == Pcs{bias + 0x1050, bias + 0x1150});
    CHECK(world.walk(simple_start(), stack.copy(false), space) == StopReason::bad_read);

    SECTION("a distant address is damage") {
        Registers start = simple_start();
        start.set(rbp, 0x1234567890);
        CHECK(world.walk(start, stack.copy(true), space) == StopReason::bad_read);
        start.set(rbp, stack_at - 0x1000);
        CHECK(world.walk(start, stack.copy(true), space) == StopReason::bad_read);
    }
    SECTION("a word that crosses the end is beyond it") {
        Stack short_stack(stack_at, 1);
        CHECK(world.walk(simple_start(), short_stack.copy(true), space) == StopReason::truncated_copy);
        const StackCopy part{.address = stack_at, .bytes = stack.copy().bytes.first(15), .cut = true};
        CHECK(world.walk(simple_start(), part, space) == StopReason::truncated_copy);
        CHECK(world.walk(simple_start(), {.address = stack_at, .bytes = {}, .cut = true}, space) ==
              StopReason::truncated_copy);
        CHECK(world.walk(simple_start(), {}, space) == StopReason::bad_read);
    }
    SECTION("a saved register may lie beyond the copy while the return address does not") {
        modules()[1].rows[0] = RowIs(0x1000, 0x1100, rsp, 16, rip).saved(rip, -8).saved(rbp, 0x100);
        world.unwinder.forget(1);
        CHECK(world.walk(simple_start(), stack.copy(true), space) == StopReason::truncated_copy);
        CHECK(world.frames.size() == 2);
        CHECK(world.frames[1].fp == 0);
        CHECK(world.walk(simple_start(), stack.copy(false), space) == StopReason::no_info);
    }
}

TEST_CASE("A register saved below the stack pointer is already restored") {
    World world;
    // At "ret", after "leave": the table still has the place of rbp.
    modules()[1].rows = {RowIs(0x1000, 0x1100, rsp, 8, rip).saved(rip, -8).saved(rbp, -16), middle_row(), root_row()};
    Space space({piece()});
    Stack stack(stack_at, 8);
    stack.put(stack_at, bias + 0x1150).put(stack_at + 40, 0xf00).put(stack_at + 48, bias + 0x1250);
    const Registers start = registers_of(Arch::x86_64, {{rip, bias + 0x1050}, {rsp, stack_at}, {rbp, stack_at + 40}});
    CHECK(world.walk(start, stack.copy(), space) == StopReason::root);
    CHECK(world.pcs() == Pcs{bias + 0x1050, bias + 0x1150, bias + 0x1250});
}

TEST_CASE("A walk without progress ends") {
    World world;
    Space space({piece()});
    SECTION("same place, same pc") {
        modules()[1].rows = {RowIs(0x1000, 0x1100, rsp, 0, rip).saved(rip, 0)};
        Stack stack(stack_at, 1);
        stack.put(stack_at, bias + 0x1050);
        const Registers start = registers_of(Arch::x86_64, {{rip, bias + 0x1050}, {rsp, stack_at}});
        CHECK(world.walk(start, stack.copy(), space) == StopReason::not_advancing);
        CHECK(world.frames.size() == 1);
    }
    SECTION("a loop of two frames") {
        modules()[1].rows = {RowIs(0x1000, 0x1100, rbp, 0, rip).saved(rip, 8).saved(rbp, 0)};
        Stack circle(stack_at, 4);
        circle.put(stack_at, stack_at + 16).put(stack_at + 8, bias + 0x1060);
        circle.put(stack_at + 16, stack_at).put(stack_at + 24, bias + 0x1050);
        const Registers start = registers_of(Arch::x86_64, {{rip, bias + 0x1050}, {rsp, stack_at}, {rbp, stack_at}});
        CHECK(world.walk(start, circle.copy(), space, 4096) == StopReason::not_advancing);
        CHECK(world.frames.size() > 3);  // a walk may move to another stack further in, and back again
        CHECK(world.frames.size() < 50);
    }
}

TEST_CASE("The frame limit is not the root, and the root is not the limit") {
    World world;
    modules()[1].rows = {leaf_row(), middle_row(), root_row()};
    Space space({piece()});
    const Stack stack = simple_stack();
    CHECK(world.walk(simple_start(), stack.copy(), space, 2) == StopReason::max_depth);
    CHECK(world.frames.size() == 2);
    CHECK(world.walk(simple_start(), stack.copy(), space, 3) == StopReason::root);
    CHECK(world.walk(simple_start(), stack.copy(), space, 1) == StopReason::max_depth);
    CHECK(world.frames.size() == 1);
}

TEST_CASE("A walk ends where its tables take too much work, and the next walk continues from there") {
    World world;
    modules()[1].rows = {leaf_row(), middle_row(), root_row()};
    modules()[1].work_of_row = TableWork::most_in_stack / 3 * 2;
    Space space({piece()});
    const Stack stack = simple_stack();
    CHECK(world.walk(simple_start(), stack.copy(), space) == StopReason::too_much_work);
    CHECK(world.frames.size() == 2);
    CHECK(world.unwinder.stack_spent());
    // Rules that were found are kept.
    CHECK(world.walk(simple_start(), stack.copy(), space) == StopReason::too_much_work);
    CHECK(world.frames.size() == 3);
    CHECK(world.walk(simple_start(), stack.copy(), space) == StopReason::root);
    CHECK_FALSE(world.unwinder.stack_spent());
}

TEST_CASE("All walks of a round share a limit, which cached rules do not use up") {
    World world;
    modules()[1].rows = {leaf_row(), middle_row(), root_row()};
    Space space({piece()});
    const Stack stack = simple_stack();
    CHECK(world.walk(simple_start(), stack.copy(), space) == StopReason::root);
    world.unwinder.begin_round();
    modules()[2].work_of_row = TableWork::most_in_stack / 2;
    const std::uint64_t others = 0x900000;
    Space other({{others, others + 0x100000, 2, others}});
    for (std::uint64_t round = 0; round < 2; ++round) {
        StopReason stop = StopReason::root;
        std::uint64_t walks = 0;
        while (stop != StopReason::too_much_work && walks < 1000) {
            const std::uint64_t pc = others + 0x1000 * round + walks++;
            stop = world.walk(registers_of(Arch::x86_64, {{rip, pc}, {rsp, 0x7000}}), stack.copy(), other);
        }
        const std::uint64_t affordable = TableWork::most_in_round / modules()[2].work_of_row;
        CHECK(walks <= affordable);
        CHECK(walks >= affordable / 2);
        CHECK(world.walk(simple_start(), stack.copy(), space) == StopReason::root);
        world.unwinder.begin_round();
    }
}

TEST_CASE("Addresses without code") {
    World world;
    modules()[1].rows = {leaf_row(), middle_row(), root_row()};
    Space space({piece()});
    Stack stack = simple_stack();
    SECTION("a return address of 0 ends the stack and is not a frame") {
        stack.put(stack_at + 56, 0);
        CHECK(world.walk(simple_start(), stack.copy(), space) == StopReason::no_map);
        CHECK(world.frames.size() == 2);
    }
    SECTION("a return address in no mapping ends the stack and is not a frame") {
        stack.put(stack_at + 56, 0xdead0000);
        CHECK(world.walk(simple_start(), stack.copy(), space) == StopReason::no_map);
        CHECK(world.pcs() == Pcs{bias + 0x1050, bias + 0x1150});
    }
    SECTION("the caller of a null pointer left a return address") {
        Registers start = simple_start();
        start.set(rip, 0);
        start.set(rsp, stack_at + 8);
        CHECK(world.walk(start, stack.copy(), space) == StopReason::root);
        CHECK(world.pcs() == Pcs{0, bias + 0x1150, bias + 0x1250});
        CHECK(world.frames[1].found_by == FoundBy::link_register);
        CHECK(world.frames[1].sp == stack_at + 16);
        start.set(rsp, stack_at);  // the value there is not a code address
        CHECK(world.walk(start, stack.copy(), space) == StopReason::no_map);
        CHECK(world.frames.size() == 1);
    }
}

TEST_CASE("The program's entry is the outermost frame even without a table") {
    World world;
    modules()[1].rows = {leaf_row(), middle_row()};
    Space space({piece()});
    Stack stack = simple_stack();
    CHECK(world.walk(simple_start(), stack.copy(), space) != StopReason::root);
    modules()[1].entry = 0x1240;
    CHECK(world.walk(simple_start(), stack.copy(), space) == StopReason::root);
    CHECK(world.frames.size() == 3);
    SECTION("also if its rows lead nowhere") {
        modules()[1].rows.push_back(RowIs(0x1240, 0x1260, rsp, 8, rip).saved(rip, -8));
        stack.put(stack_at + 64, 0);
        world.unwinder.forget(1);
        CHECK(world.walk(simple_start(), stack.copy(), space) == StopReason::root);
        CHECK(world.frames.size() == 3);
    }
    SECTION("but an address 64 bytes after it is in another function") {
        modules()[1].entry = 0x1250 - 64;
        CHECK(world.walk(simple_start(), stack.copy(), space) != StopReason::root);
    }
}

TEST_CASE("Code without tables is unwound with the frame pointer") {
    World world;
    modules()[1].rows = {root_row()};
    constexpr std::uint64_t jit = 0x10000000;
    Space space({piece(), {jit, jit + 0x1000, 0, 0}});
    Stack stack(stack_at, 8);
    stack.put(stack_at + 16, stack_at + 32).put(stack_at + 24, jit + 0x20);
    stack.put(stack_at + 32, 0).put(stack_at + 40, bias + 0x1250);
    const Registers start = registers_of(Arch::x86_64, {{rip, jit + 0x10}, {rsp, stack_at}, {rbp, stack_at + 16}});
    REQUIRE(world.walk(start, stack.copy(), space) == StopReason::root);
    const std::vector<Frame> expected{
        {jit + 0x10, stack_at, stack_at + 16, FoundBy::registers, false, false},
        {jit + 0x20, stack_at + 32, stack_at + 32, FoundBy::frame_pointer, true, false},
        {bias + 0x1250, stack_at + 48, 0, FoundBy::frame_pointer, true, false},
    };
    CHECK(world.frames == expected);

    SECTION("unless it does not lead to code") {
        stack.put(stack_at + 24, 0x123);
        CHECK(world.walk(start, stack.copy(), space) == StopReason::no_info);
        CHECK(world.frames.size() == 1);
    }
    SECTION("or leads inwards") {
        Registers inwards = start;
        inwards.set(rsp, stack_at + 24);
        CHECK(world.walk(inwards, stack.copy(), space) == StopReason::no_info);
    }
    SECTION("or leads beyond the copy") {
        Stack short_stack(stack_at, 2);
        CHECK(world.walk(start, short_stack.copy(true), space) == StopReason::truncated_copy);
        CHECK(world.walk(start, short_stack.copy(false), space) == StopReason::no_info);
    }
}

TEST_CASE("Rows that need an expression, another register or the stack pointer from memory") {
    World world;
    Space space({piece()});
    Stack stack(stack_at, 16);
    stack.put(stack_at + 40, stack_at + 96).put(stack_at + 88, bias + 0x1250);
    // main() with an aligned stack: the CFA is stored below the frame pointer.
    FrameRow aligned = RowIs(0x1000, 0x1100, rsp, 0, rip).saved(rip, -8).cfa_expression("\x76\x78\x06");  // *(rbp - 8)
    modules()[1].rows = {aligned, root_row()};
    Registers start = registers_of(Arch::x86_64, {{rip, bias + 0x1050}, {rsp, stack_at}, {rbp, stack_at + 48}});
    CHECK(world.walk(start, stack.copy(), space) == StopReason::root);
    CHECK(world.pcs() == Pcs{bias + 0x1050, bias + 0x1250});
    CHECK(world.frames[1].sp == stack_at + 96);
    CHECK(world.frames[1].found_by == FoundBy::expression);

    SECTION("the expression reads beyond the copy") {
        Registers far = start;
        far.set(rbp, stack_at + 0x200);
        CHECK(world.walk(far, stack.copy(true), space) == StopReason::truncated_copy);
        CHECK(world.walk(far, stack.copy(false), space) == StopReason::bad_read);
    }
    SECTION("the expression reads the module's constants") {
        modules()[1].memory[0x3000] = std::string("\x60\x00\xfc\x7f\x00\x00\x00\x00", 8);  // stack_at + 96
        FrameRow constant = RowIs(0x1000, 0x1100, rsp, 0, rip).saved(rip, -8);
        constant = RowIs(0x1000, 0x1100, rsp, 0, rip)
                       .saved(rip, -8)
                       .cfa_expression(std::string("\x03\x00\x30\x00\x00\x00\x00\x00\x00\x06", 10));  // *(addr 0x3000)
        modules()[1].rows[0] = constant;
        world.unwinder.forget(1);
        CHECK(world.walk(start, stack.copy(), space) == StopReason::root);
        CHECK(world.frames[1].sp == stack_at + 96);
        // A value from the module is not a failed read of the stack.
        modules()[1].rows[0].registers[rip] = {.kind = Kind::in_register, .reg = r10, .offset = 0, .expression = {}};
        world.unwinder.forget(1);
        CHECK(world.walk(start, stack.copy(), space) == StopReason::no_info);
    }
    SECTION("return address in a register") {
        modules()[1].rows[0] = RowIs(0x1000, 0x1100, rsp, 0, rip).kind(rip, Kind::in_register, r10);
        world.unwinder.forget(1);
        start.set(r10, bias + 0x1250);
        CHECK(world.walk(start, stack.copy(), space) == StopReason::root);
        CHECK(world.frames[1].found_by == FoundBy::rule);
        start.forget(r10);
        CHECK(world.walk(start, stack.copy(), space) == StopReason::no_info);
    }
    SECTION("the stack pointer itself is saved") {
        modules()[1].rows[0] = RowIs(0x1000, 0x1100, rsp, 96, rip).saved(rip, -8).saved(rsp, -56);
        world.unwinder.forget(1);
        CHECK(world.walk(start, stack.copy(), space) == StopReason::root);
        CHECK(world.frames[1].sp == stack_at + 96);
    }
}

TEST_CASE("A signal frame's caller was interrupted") {
    World world;
    Space space({piece()});
    // The handler at 0x1000 returns to a restorer at 0x2000. Its table has every register at the CFA.
    modules()[1].rows = {
        leaf_row(), middle_row(), root_row(),
        RowIs(0x1fff, 0x2010, rsp, 0, rip).saved(rip, 16).saved(rsp, 8).saved(rbp, 0).saved(rax, 24).signal_frame(),
        RowIs(0x3000, 0x3100, rax, 16, rip).saved(rip, -8)};
    Stack stack(stack_at, 64);
    const std::uint64_t context = stack_at + 16;
    stack.put(stack_at + 8, bias + 0x2000);
    // Interrupted at the first instruction of a function. The row at the byte before belongs to another function.
    stack.put(context, 0xbb).put(context + 16, bias + 0x3000);
    const Registers start = registers_of(Arch::x86_64, {{rip, bias + 0x1050}, {rsp, stack_at}});

    SECTION("on the same stack") {
        stack.put(context + 8, stack_at + 200).put(context + 24, stack_at + 200).put(stack_at + 208, bias + 0x1250);
        CHECK(world.walk(start, stack.copy(), space) == StopReason::root);
        CHECK(world.pcs() == Pcs{bias + 0x1050, bias + 0x2000, bias + 0x3000, bias + 0x1250});
        CHECK_FALSE(world.frames[2].return_address);
        CHECK(world.frames[2].sp == stack_at + 200);
        CHECK(world.frames[2].fp == 0xbb);
        CHECK(world.frames[3].return_address);
    }
    SECTION("on an alternate stack above the thread's own") {
        Stack both(stack_at - 64, 72);
        both.put(stack_at + 8, bias + 0x2000).put(context + 16, bias + 0x3000);
        both.put(context + 8, stack_at - 64).put(context + 24, stack_at - 64).put(stack_at - 56, bias + 0x1250);
        CHECK(world.walk(start, both.copy(), space) == StopReason::root);
        CHECK(world.pcs() == Pcs{bias + 0x1050, bias + 0x2000, bias + 0x3000, bias + 0x1250});
    }
    SECTION("the interrupted stack is not readable") {
        stack.put(context + 8, 0x5000).put(context + 24, 0x5000);
        CHECK(world.walk(start, stack.copy(true), space) == StopReason::bad_read);
        CHECK(world.frames.size() == 3);
    }
    SECTION("the interrupted address has no code") {
        stack.put(context + 8, stack_at + 200).put(context + 16, 0).put(stack_at + 200, bias + 0x1250);
        CHECK(world.walk(start, stack.copy(), space) == StopReason::root);
        CHECK(world.pcs() == Pcs{bias + 0x1050, bias + 0x2000, 0, bias + 0x1250});
    }
}

TEST_CASE("The restorer is recognized by its code where no table describes it") {
    World world;
    Space space({piece()});
    modules()[1].rows = {leaf_row(), root_row(),
                         // The code right before the restorer has its own row.
                         RowIs(0x1f00, 0x2000, rsp, 8, rip).saved(rip, -8)};
    modules()[1].memory[0x2000] = std::string("\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05", 9);
    Stack stack(stack_at, 64);
    const std::uint64_t context = stack_at + 16 + 40;  // after flags, link and stack of struct ucontext
    stack.put(stack_at + 8, bias + 0x2000);
    for (std::uint64_t i = 0; i < 17; ++i) stack.put(context + 8 * i, 0x100 + i);
    stack.put(context + 8 * 15, stack_at + 300 + 4).put(context + 8 * 16, bias + 0x1210);
    const Registers start = registers_of(Arch::x86_64, {{rip, bias + 0x1050}, {rsp, stack_at}});
    CHECK(world.walk(start, stack.copy(), space) == StopReason::root);
    CHECK(world.pcs() == Pcs{bias + 0x1050, bias + 0x2000, bias + 0x1210});
    CHECK(world.frames[2].found_by == FoundBy::signal);
    CHECK_FALSE(world.frames[2].return_address);
    CHECK(world.frames[2].fp == 0x100 + 10);  // rbp is the eleventh
    CHECK(world.frames[2].sp == stack_at + 304);
    // The rule is now cached. A truncated signal frame is reported as such.
    const Stack cut(stack_at, 20);
    Stack short_stack(stack_at, 20);
    short_stack.put(stack_at + 8, bias + 0x2000);
    CHECK(world.walk(start, short_stack.copy(true), space) == StopReason::truncated_copy);
    CHECK(world.frames.size() == 2);
}

TEST_CASE("32-bit x86: addresses wrap at 32 bits") {
    World world;
    modules()[1].arch = Arch::x86;
    constexpr std::uint8_t esp = 4, ebp = 5, eip = 8;
    modules()[1].rows = {RowIs(0x1000, 0x1100, esp, 8, eip).saved(eip, -4).saved(ebp, -8),
                         RowIs(0x1200, 0x1300, esp, 4, eip).kind(eip, Kind::undefined)};
    Space space({piece()});
    Stack stack(0xfffff000, 4, 4);
    stack.put(0xfffff000, 0x1234).put(0xfffff004, bias + 0x1251);
    const Registers start = registers_of(Arch::x86, {{eip, bias + 0x1050}, {esp, 0xfffff000}});
    CHECK(world.walk(start, stack.copy(), space) == StopReason::root);
    CHECK(world.frames.at(1) == Frame{bias + 0x1251, 0xfffff008, 0x1234, FoundBy::rule, true, false, 0xfffff004});
}

TEST_CASE("aarch64: link register, pointer authentication, frame records") {
    World world;
    modules()[1].arch = Arch::aarch64;
    constexpr std::uint8_t fp = 29, lr = 30, sp = 31, pc = 32;
    FrameRow root = RowIs(0x1200, 0x1300, sp, 0, lr).kind(lr, Kind::undefined);
    // A frame of 32 bytes with the record at its bottom, as gcc builds it: the CFA stays relative to sp.
    FrameRow record = RowIs(0x1100, 0x1200, sp, 32, lr).saved(fp, -32).saved(lr, -24);
    modules()[1].rows = {RowIs(0x1000, 0x1100, sp, 0, lr), record, root};
    Space space({piece()});
    Stack stack(stack_at, 16);
    stack.put(stack_at, stack_at + 64).put(stack_at + 8, 0x00a4000000000000 | (bias + 0x1250));
    Registers start =
        registers_of(Arch::aarch64,
                     {{pc, bias + 0x1010}, {sp, stack_at}, {fp, stack_at}, {lr, 0xff55000000000000 | (bias + 0x1150)}});
    REQUIRE(world.walk(start, stack.copy(), space) == StopReason::root);
    const std::vector<Frame> expected{
        {bias + 0x1010, stack_at, stack_at, FoundBy::registers, false, false},
        {bias + 0x1150, stack_at, stack_at, FoundBy::rule, true, true},
        {bias + 0x1250, stack_at + 32, stack_at + 64, FoundBy::rule, true, false, stack_at + 8},
    };
    CHECK(world.frames == expected);

    SECTION("the record counts only if the frame pointer points to it") {
        start.set(fp, 0x77);
        CHECK(world.walk(start, stack.copy(), space) == StopReason::root);
        CHECK_FALSE(world.frames[1].frame_pointer_safe);
    }
    SECTION("a caller's link register belongs to its own call") {
        modules()[1].rows[1] = RowIs(0x1100, 0x1200, sp, 32, lr);
        world.unwinder.forget(1);
        CHECK(world.walk(start, stack.copy(), space) == StopReason::no_info);
        CHECK(world.frames.size() == 2);
    }
    SECTION("without tables: the frame pointer, else the link register") {
        constexpr std::uint64_t jit = 0x10000000;
        Space with_jit({piece(), {jit, jit + 0x1000, 0, 0}});
        start.set(pc, jit);
        start.set(lr, bias + 0x1150);
        CHECK(world.walk(start, stack.copy(), with_jit) == StopReason::root);
        CHECK(world.pcs() == Pcs{jit, bias + 0x1250});
        CHECK(world.frames[1].sp == 0);  // a record does not contain the stack pointer
        start.set(fp, 0);
        CHECK(world.walk(start, stack.copy(), with_jit) == StopReason::root);
        CHECK(world.pcs() == Pcs{jit, bias + 0x1150, bias + 0x1250});
        CHECK(world.frames[1].found_by == FoundBy::link_register);
    }
    SECTION("after a record, the frame pointer leads to the next one") {
        constexpr std::uint64_t jit = 0x10000000;
        Space with_jit({piece(), {jit, jit + 0x1000, 0, 0}});
        start.set(pc, jit);
        stack.put(stack_at, stack_at + 64).put(stack_at + 8, bias + 0x1150);
        stack.put(stack_at + 64, 0).put(stack_at + 72, bias + 0x1250);
        CHECK(world.walk(start, stack.copy(), with_jit) == StopReason::root);
        CHECK(world.pcs() == Pcs{jit, bias + 0x1150, bias + 0x1250});
        CHECK(world.frames[2].sp == stack_at + 96);
    }
    SECTION("the caller of a null pointer is in the link register") {
        start.set(pc, 0);
        CHECK(world.walk(start, stack.copy(), space) == StopReason::root);
        CHECK(world.pcs() == Pcs{0, bias + 0x1150, bias + 0x1250});
    }
}

TEST_CASE("ARM: code without tables that cannot be analyzed returns to the link register") {
    World world;
    modules()[1].arch = Arch::arm;
    constexpr std::uint8_t sp = 13, lr = 14, pc = 15;
    modules()[1].entry = 0x1240;  // no row at all, as if the index had "cannot unwind"
    // At the pc a switch, tbb [r0, r0]; at 0x124c and 0x126c: bl 0x1000, bl 0x1100; at 0x127e: blx r3.
    modules()[1].memory[0x1010] = std::string("\xd0\xe8\x00\xf0\x00\x00\x00\x00", 8);
    modules()[1].memory[0x1248] = std::string("\x00\xbf\x00\xbf\xff\xf7\xd8\xfe", 8);
    modules()[1].memory[0x1268] = std::string("\x00\xbf\x00\xbf\xff\xf7\x48\xff", 8);
    modules()[1].memory[0x1278] = std::string("\x00\xbf\x00\xbf\x00\xbf\x98\x47", 8);
    Space space({piece()});
    const Stack stack(stack_at, 4, 4);
    Registers start = registers_of(Arch::arm, {{pc, bias + 0x1010}, {sp, stack_at}, {lr, bias + 0x1251}});
    CHECK(world.walk(start, stack.copy(), space) == StopReason::root);
    CHECK(world.pcs() == Pcs{bias + 0x1010, bias + 0x1250});  // Thumb code
    CHECK(world.walk(start, stack.copy(), space, 1) == StopReason::max_depth);
    CHECK(world.frames.size() == 1);
    // These follow a call of another function, a call of an unknown function, or no call: they are left over from
    // earlier.
    for (const std::uint64_t address : {bias + 0x1271, bias + 0x1281, bias + 0x124d, std::uint64_t{0}}) {
        start.set(lr, address);
        CHECK(world.walk(start, stack.copy(), space) == StopReason::no_info);
        CHECK(world.frames.size() == 1);
    }
}

TEST_CASE("ARM: a frame from its code counts if its caller made a call") {
    World world;
    modules()[1].arch = Arch::arm;
    constexpr std::uint8_t sp = 13, lr = 14, pc = 15;
    modules()[1].entry = 0x1240;
    // At the pc: add sp, #8; pop {r4, pc}; at 0x124c: bl.
    modules()[1].memory[0x1010] = std::string("\x02\xb0\x10\xbd\x00\xbf\x00\xbf", 8);
    modules()[1].memory[0x1248] = std::string("\x00\xbf\x00\xbf\xff\xf7\xd8\xfe", 8);
    Space space({piece()});
    Stack stack(stack_at, 4, 4);
    stack.put(stack_at + 8, 77).put(stack_at + 12, bias + 0x1251);
    const Registers start = registers_of(Arch::arm, {{pc, bias + 0x1010}, {sp, stack_at}, {lr, 0}});
    CHECK(world.walk(start, stack.copy(), space) == StopReason::root);
    CHECK(world.pcs() == Pcs{bias + 0x1010, bias + 0x1250});
    CHECK(world.frames[1].found_by == FoundBy::code);
    CHECK(world.frames[1].sp == stack_at + 16);
    stack.put(stack_at + 12, bias + 0x124d);
    CHECK(world.walk(start, stack.copy(), space) == StopReason::no_info);
    CHECK(world.frames.size() == 1);
}

TEST_CASE("Stacks of big-endian targets") {
    World world({.big_endian = true});
    modules()[1].arch = Arch::aarch64;
    modules()[1].rows = {RowIs(0x1000, 0x1100, 31, 16, 30).saved(30, -8),
                         RowIs(0x1200, 0x1300, 31, 0, 30).kind(30, Kind::undefined)};
    Space space({piece()});
    Stack stack(stack_at, 2, 8, true);
    stack.put(stack_at + 8, bias + 0x1250);
    CHECK(world.walk(registers_of(Arch::aarch64, {{32, bias + 0x1010}, {31, stack_at}}), stack.copy(), space) ==
          StopReason::root);
    CHECK(world.pcs() == Pcs{bias + 0x1010, bias + 0x1250});
}

TEST_CASE("A module that cannot be opened is tried once") {
    World world;
    modules()[1].opens = false;
    Space space({piece()});
    const Stack stack = simple_stack();
    for (int i = 0; i < 3; ++i) {
        Registers start = simple_start();
        start.set(rip, bias + 0x1050 + static_cast<std::uint64_t>(i));
        start.set(rbp, 0);
        CHECK(world.walk(start, stack.copy(), space) == StopReason::no_info);
    }
    CHECK(world.files.lookups == 1);
    CHECK(world.unwinder.survey(1, Arch::x86_64).functions == 0);
    CHECK(world.files.lookups == 1);
}

TEST_CASE("Facts about an address, and a survey of a module") {
    World world;
    modules()[1].rows = {leaf_row(), middle_row(), root_row()};
    modules()[1].entry = 0x1310;
    Space space({piece()});
    const auto facts = [&](std::uint64_t at, bool is_return) {
        return world.unwinder.facts(Arch::x86_64, {bias + at, is_return}, space);
    };
    CHECK(facts(0x1050, false).known);
    CHECK_FALSE(facts(0x1050, false).frame_pointer_safe);
    CHECK(facts(0x1050, false).frame_pointer_same);
    CHECK(facts(0x1150, true).frame_pointer_safe);
    CHECK_FALSE(facts(0x1150, true).frame_pointer_same);
    CHECK(facts(0x1150, true).row_start == bias + 0x1100);
    CHECK(facts(0x1150, false).row_end == bias + 0x1200);
    CHECK_FALSE(facts(0x1150, true).root);
    CHECK(facts(0x1250, true).root);
    CHECK(facts(0x1200, true).frame_pointer_safe);  // the call is in the previous function
    CHECK_FALSE(facts(0x1200, false).frame_pointer_safe);
    CHECK_FALSE(facts(0x1310, false).known);
    CHECK(facts(0x1310, false).root);
    CHECK_FALSE(facts(0x2000, false).known);
    CHECK_FALSE(world.unwinder.facts(Arch::x86_64, {0x10, false}, space).known);

    const Unwinder::Survey survey = world.unwinder.survey(1, Arch::x86_64);
    CHECK(survey.functions == 2);  // without the root
    CHECK(survey.frame_pointer_share == Approx(0.5));
    CHECK(world.unwinder.survey(1, Arch::aarch64).functions == 0);
}

TEST_CASE("Memory stays below the limit, and evicted tables are read again") {
    World world({.memory_bytes = std::size_t{1} << 20});
    constexpr ModuleId count = 600;
    std::vector<CodePiece> pieces;
    for (ModuleId id = 1; id <= count; ++id) {
        modules()[id].rows = {root_row(), RowIs(0x1000, 0x1100, rsp, 0, rip).cfa_expression("\x77\x10").saved(rip, -8)};
        modules()[id].index_bytes = 100'000;
        pieces.push_back(piece(id, std::uint64_t{id} << 24));
    }
    Space space(std::move(pieces));
    Stack stack(stack_at, 4);
    for (int round = 0; round < 2; ++round) {
        for (ModuleId id = 1; id <= count; ++id) {
            stack.put(stack_at + 8, (std::uint64_t{id} << 24) + 0x1250);
            const Registers start =
                registers_of(Arch::x86_64, {{rip, (std::uint64_t{id} << 24) + 0x1010}, {rsp, stack_at}});
            REQUIRE(world.walk(start, stack.copy(), space) == StopReason::root);
            REQUIRE(world.frames.size() == 2);
            REQUIRE(world.unwinder.memory_bytes() <= std::size_t{1} << 20);
        }
    }
    CHECK(modules()[1].opened > 1);
}
