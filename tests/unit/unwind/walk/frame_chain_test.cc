// The kernel's call chains compared with the tables, and joined with short walks.
#include "unwind/walk/frame_chain.h"

#include <catch2/catch.hpp>

#include "../fake_modules.h"
#include "unwind/arch/arch.h"
#include "unwind/tables/rule.h"
#include "unwind/walk/stack_need.h"

using namespace flamewire;
using namespace flamewire::unwind;
using namespace flamewire::unwind::fake;
using Kind = RegisterRule::Kind;
using Chain = std::vector<std::uint64_t>;

namespace {

constexpr std::uint8_t rbx = 3, rbp = 6, rsp = 7, rip = 16;
constexpr std::uint64_t bias = 0x400000, stack_at = 0x7ffc0000;

// 0x1000: a leaf that leaves rbp unchanged. 0x1100 to 0x13ff: frame pointers. 0x1400: the root. 0x1500: uses rbp for
// something else. 0x1600: the prologue of 0x1610. 0x1700: leaves rbp pointing to its caller's frame.
void make_module() {
    const auto standard = [](std::uint64_t start, std::uint64_t end) {
        return RowIs(start, end, rbp, 16, rip).saved(rip, -8).saved(rbp, -16);
    };
    modules()[1].rows = {RowIs(0x1000, 0x1100, rsp, 16, rip).saved(rip, -8).saved(rbx, -16),
                         standard(0x1100, 0x1200),
                         standard(0x1200, 0x1300),
                         standard(0x1300, 0x1400),
                         RowIs(0x1400, 0x1500, rsp, 8, rip).kind(rip, Kind::undefined),
                         RowIs(0x1500, 0x1600, rsp, 16, rip).saved(rip, -8).saved(rbp, -16),
                         RowIs(0x1600, 0x1610, rsp, 16, rip).saved(rip, -8).saved(rbp, -16),
                         standard(0x1610, 0x1700),
                         RowIs(0x1700, 0x1800, rsp, 8, rip).saved(rip, -8)};
    modules()[1].rows.back().skips_caller = true;
}

constexpr std::uint64_t leaf = bias + 0x1050, one = bias + 0x1150, two = bias + 0x1250, three = bias + 0x1350,
                        root = bias + 0x1450, without = bias + 0x1550, prologue = bias + 0x1601,
                        passing = bias + 0x1750;

}  // namespace

TEST_CASE("A chain is checked entry by entry") {
    World world;
    make_module();
    Space space({{bias, bias + 0x10000, 1, bias}});
    const auto check = [&](const Chain& chain) { return check_chain(world.unwinder, Arch::x86_64, chain, space); };

    ChainCheck result = check({one, two, three, root});
    CHECK(result.quality == ChainQuality::whole);
    CHECK(result.right == 4);
    CHECK(result.at_root);

    result = check({one, two, three});  // the kernel stopped early
    CHECK(result.quality == ChainQuality::open_end);
    CHECK(result.right == 3);
    CHECK_FALSE(result.at_root);

    // The caller of `without` is missing, or the entries after it are wrong.
    result = check({one, two, without, three, root});
    CHECK(result.quality == ChainQuality::open_end);
    CHECK(result.right == 3);
    CHECK_FALSE(result.at_root);

    result = check({leaf, two, root});
    CHECK(result.quality == ChainQuality::leaf_unsafe);
    CHECK(result.right == 3);
    CHECK(result.at_root);

    result = check({leaf, two, leaf, root});
    CHECK(result.quality == ChainQuality::leaf_unsafe);
    CHECK(result.right == 3);
    CHECK_FALSE(result.at_root);

    result = check({without, two, root});  // rbp was arbitrary, so `two` is arbitrary
    CHECK(result.quality == ChainQuality::leaf_unsafe);
    CHECK(result.right == 1);
    CHECK_FALSE(result.at_root);

    result = check({prologue, two, root});  // rbp was pushed and is still the caller's
    CHECK(result.quality == ChainQuality::leaf_unsafe);
    CHECK(result.right == 3);
    CHECK(result.at_root);

    result = check({one, 0x99, root});  // there is no code
    CHECK(result.quality == ChainQuality::open_end);
    CHECK(result.right == 1);

    result = check({one, bias + 0x9000, root});  // code without tables
    CHECK(result.quality == ChainQuality::open_end);
    CHECK(result.right == 2);

    result = check({one, passing, two, root});  // its caller is missing, but `two` is right
    CHECK(result.quality == ChainQuality::whole);
    CHECK(result.right == 4);
    CHECK(skips_caller(world.unwinder, Arch::x86_64, Chain{one, passing, two, root}, 1, space));
    CHECK_FALSE(skips_caller(world.unwinder, Arch::x86_64, Chain{one, passing, two, root}, 2, space));

    result = check({root});
    CHECK(result.quality == ChainQuality::whole);
    CHECK(result.right == 1);
    CHECK(check({}).right == 0);
}

TEST_CASE("A short walk is continued with the chain") {
    World world;
    make_module();
    Space space({{bias, bias + 0x10000, 1, bias}});
    // Frames: leaf (16 bytes), one (record at +32), two (record at +64), three (record at +96), root. 64 bytes are
    // copied.
    Stack whole(stack_at, 16);
    whole.put(stack_at + 8, one);
    whole.put(stack_at + 32, stack_at + 64).put(stack_at + 40, two);
    whole.put(stack_at + 64, stack_at + 96).put(stack_at + 72, three);
    whole.put(stack_at + 96, 0).put(stack_at + 104, root);
    const StackCopy copy{.address = stack_at, .bytes = whole.copy().bytes.first(64), .cut = true};
    // The kernel skips `one`, the leaf's caller, because it follows the frame record.
    const Chain chain{leaf, two, three, root};
    const Registers start = registers_of(Arch::x86_64, {{rip, leaf}, {rsp, stack_at}, {rbp, stack_at + 32}});
    REQUIRE(world.walk(start, copy, space) == StopReason::truncated_copy);
    REQUIRE(world.pcs() == Chain{leaf, one, two});

    bool at_root = false;
    const auto join = [&](const Chain& with, std::size_t max_depth = 1024) {
        return splice(world.unwinder, Arch::x86_64, with, copy, space, max_depth, world.frames, at_root);
    };
    SECTION("to the root") {
        REQUIRE(join(chain));
        CHECK(at_root);
        CHECK(world.pcs() == Chain{leaf, one, two, three, root});
        CHECK(world.frames[3] == Frame{three, 0, 0, FoundBy::chain, true, true});
        CHECK(world.frames[4] == Frame{root, 0, 0, FoundBy::chain, true, false});
    }
    SECTION("to the last correct entry") {
        REQUIRE(join({leaf, two, without, root}));
        CHECK_FALSE(at_root);
        CHECK(world.pcs() == Chain{leaf, one, two, without});
    }
    SECTION("to the frame limit") {
        REQUIRE(join(chain, 4));
        CHECK_FALSE(at_root);
        CHECK(world.pcs() == Chain{leaf, one, two, three});
    }
    SECTION("not when the walk and the chain disagree") {
        CHECK_FALSE(join({leaf, one, two, three, root}));
        CHECK(world.pcs() == Chain{leaf, one, two});
    }
    SECTION("not when the chain adds nothing") {
        CHECK_FALSE(join({leaf, two}));
        CHECK_FALSE(join({leaf}));
        CHECK_FALSE(join({}));
        CHECK(world.pcs() == Chain{leaf, one, two});
    }
    SECTION("not when no walked frame is in the chain") {
        for (Frame& frame : world.frames) frame.frame_pointer_safe = false;
        CHECK_FALSE(join(chain));
    }
}

TEST_CASE("The chain's frames are found by their records when the walk starts further in") {
    World world;
    make_module();
    // `without` has no frame pointer but leaves rbp unchanged at this point. The walk passes two frames before one that
    // has it.
    modules()[1].rows.push_back(RowIs(0x1800, 0x1900, rsp, 16, rip).saved(rip, -8));
    Space space({{bias, bias + 0x10000, 1, bias}});
    Stack stack(stack_at, 8);
    stack.put(stack_at + 8, bias + 0x1850).put(stack_at + 24, one);
    stack.put(stack_at + 48, stack_at + 80).put(stack_at + 56, two);
    const Registers start = registers_of(Arch::x86_64, {{rip, leaf}, {rsp, stack_at}, {rbp, stack_at + 48}});
    REQUIRE(world.walk(start, stack.copy(true), space) == StopReason::truncated_copy);
    REQUIRE(world.pcs() == Chain{leaf, bias + 0x1850, one, two});
    bool at_root = false;
    REQUIRE(splice(world.unwinder, Arch::x86_64, Chain{leaf, two, root}, stack.copy(true), space, 1024, world.frames,
                   at_root));
    CHECK(world.pcs() == Chain{leaf, bias + 0x1850, one, two, root});
    CHECK(at_root);
}

TEST_CASE("A chain skips the caller of a trampoline that leaves the frame pointer unchanged") {
    World world;
    make_module();
    constexpr std::uint64_t trampoline = 0x900006;
    Space space({{bias, bias + 0x10000, 1, bias}, {0x900000, 0x901000, 0, 0}});
    const FrameRow row = RowIs(0, 1, rsp, 16, rip).saved(rip, -8);
    space.code_rules[trampoline] = compile_rule(row, arch_info(Arch::x86_64));
    // Frames: one (record at the start), the trampoline (one word), two (record at +32), three (record at +64), root.
    Stack whole(stack_at, 12);
    whole.put(stack_at, stack_at + 32).put(stack_at + 8, trampoline).put(stack_at + 24, two);
    whole.put(stack_at + 32, stack_at + 64).put(stack_at + 40, three);
    whole.put(stack_at + 64, 0).put(stack_at + 72, root);
    const Registers start = registers_of(Arch::x86_64, {{rip, one}, {rsp, stack_at}, {rbp, stack_at}});
    // The chain as the kernel records it.
    const Chain chain{one, trampoline, three, root};
    bool at_root = false;

    REQUIRE(world.walk(start, whole.copy(), space) == StopReason::root);
    CHECK(world.pcs() == Chain{one, trampoline, two, three, root});
    CHECK(world.frames[2].found_by == FoundBy::code);
    CHECK(need_of_walk(world.unwinder, Arch::x86_64, world.frames, space, 2048) == StackNeed::long_copy);
    const ChainCheck check = check_chain(world.unwinder, Arch::x86_64, chain, space);
    CHECK(check.quality == ChainQuality::whole);
    CHECK(skips_caller(world.unwinder, Arch::x86_64, chain, 1, space));
    CHECK(world.unwinder.facts(Arch::x86_64, {trampoline, true}, space).skips_caller_of_jit);

    const StackCopy all{.address = stack_at, .bytes = whole.copy().bytes.first(64), .cut = true};
    REQUIRE(world.walk(start, all, space) == StopReason::truncated_copy);
    REQUIRE(splice(world.unwinder, Arch::x86_64, chain, all, space, 1024, world.frames, at_root));
    CHECK(at_root);
    CHECK(world.pcs() == Chain{one, trampoline, two, three, root});
    for (const Frame& frame : world.frames) CHECK_FALSE(frame.caller_missing);

    const StackCopy two_frames{.address = stack_at, .bytes = whole.copy().bytes.first(24), .cut = true};
    REQUIRE(world.walk(start, two_frames, space) == StopReason::truncated_copy);
    REQUIRE(world.pcs() == Chain{one, trampoline});
    REQUIRE(splice(world.unwinder, Arch::x86_64, chain, two_frames, space, 1024, world.frames, at_root));
    CHECK(world.pcs() == Chain{one, trampoline, three, root});
    CHECK(world.frames[1].caller_missing);
}

TEST_CASE("A program's own unwind rules count only if they lead to code") {
    World world;
    make_module();
    Space space({{bias, bias + 0x10000, 1, bias}, {0x900000, 0x901000, 0, 0}});
    const FrameRow wrong = RowIs(0, 1, rsp, 24, rip).saved(rip, -8);
    space.code_rules[0x900006] = compile_rule(wrong, arch_info(Arch::x86_64));
    Stack stack(stack_at, 8);
    stack.put(stack_at + 16, 0x1234).put(stack_at + 32, 0).put(stack_at + 40, root);
    const Registers start = registers_of(Arch::x86_64, {{rip, 0x900006}, {rsp, stack_at}, {rbp, stack_at + 32}});
    REQUIRE(world.walk(start, stack.copy(), space) == StopReason::root);
    CHECK(world.pcs() == Chain{0x900006, root});
    CHECK(world.frames[1].found_by == FoundBy::frame_pointer);
}
