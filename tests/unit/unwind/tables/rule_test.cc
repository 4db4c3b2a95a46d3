// Rows as compact rules, and the caches of rules.
#include "unwind/tables/rule.h"

#include <catch2/catch.hpp>

#include "../fake_modules.h"
#include "unwind/tables/rule_cache.h"

using namespace flamewire;
using namespace flamewire::unwind;
using namespace flamewire::unwind::fake;
using Kind = RegisterRule::Kind;

namespace {

constexpr std::uint8_t rdx = 1, rbx = 3, rbp = 6, rsp = 7, r12 = 12, rip = 16;

Rule compile(const FrameRow& row, Arch arch = Arch::x86_64) { return compile_rule(row, arch_info(arch)); }
RowIs usual() { return RowIs(0, 1, rsp, 48, rip).saved(rip, -8); }

}  // namespace

TEST_CASE("An ordinary row becomes a compact rule") {
    const Rule rule = compile(usual().saved(rbp, -16).saved(r12, -24).saved(rbx, -32));
    CHECK(rule.kind == Rule::Kind::compact);
    CHECK(rule.cfa_register == rsp);
    CHECK(rule.cfa_offset == 48);
    CHECK(rule.return_at == -1);
    CHECK_FALSE(rule.return_in_link);
    CHECK_FALSE(rule.frame_pointer_safe);
    // Positions: rbx, rbp, r12, …
    CHECK(rule.saved == 0b111);
    CHECK(rule.lost == 0);
    CHECK(rule.saved_at[0] == -4);
    CHECK(rule.saved_at[1] == -2);
    CHECK(rule.saved_at[2] == -3);

    CHECK(compile(usual().kind(rbx, Kind::undefined)).lost == 0b1);
    // A register that no caller relies on makes no difference.
    CHECK(compile(usual().saved(rdx, -16)).kind == Rule::Kind::compact);
    CHECK(compile(usual().kind(rdx, Kind::undefined)).kind == Rule::Kind::compact);
}

TEST_CASE("A return address in the link register, or nowhere") {
    const Rule link = compile(RowIs(0, 1, 31, 0, 30), Arch::aarch64);
    CHECK(link.kind == Rule::Kind::compact);
    CHECK(link.return_in_link);
    CHECK(compile(RowIs(0, 1, 31, 0, 30).kind(30, Kind::undefined), Arch::aarch64).kind == Rule::Kind::root);
    CHECK(compile(usual().kind(rip, Kind::undefined)).kind == Rule::Kind::root);
    CHECK(compile(usual().kind(rip, Kind::same)).kind == Rule::Kind::none);
    CHECK(compile(RowIs(0, 1, rsp, 8, 200)).kind == Rule::Kind::none);
    // ARM's index: pc and lr popped.
    const Rule popped =
        compile(RowIs(0, 1, 13, 16, 15).saved(15, -4).saved(14, -8).saved(3, -12).saved(4, -16), Arch::arm);
    CHECK(popped.kind == Rule::Kind::compact);
    CHECK(popped.return_at == -1);
    CHECK(popped.saved == 0b1);
    CHECK(popped.saved_at[0] == -4);
}

TEST_CASE("Rows that a compact rule cannot express stay rows") {
    CHECK(compile(usual().signal_frame()).kind == Rule::Kind::row);
    CHECK(compile(usual().cfa_expression("\x77\x08")).kind == Rule::Kind::row);
    CHECK(compile(usual().expression(rbx, Kind::at_expression, "\x77\x08")).kind == Rule::Kind::row);
    CHECK(compile(usual().kind(rip, Kind::in_register, 10)).kind == Rule::Kind::row);
    CHECK(compile(usual().kind(rbx, Kind::in_register, 10)).kind == Rule::Kind::row);
    CHECK(compile(usual().kind(rbx, Kind::cfa_plus, 0, -8)).kind == Rule::Kind::row);
    CHECK(compile(usual().saved(rsp, -16)).kind == Rule::Kind::row);
    CHECK(compile(usual().saved(rbx, -12)).kind == Rule::Kind::row);  // not aligned to a word
    CHECK(compile(usual().saved(rbx, -8 * 32768)).kind == Rule::Kind::compact);
    CHECK(compile(usual().saved(rbx, -8 * 32769)).kind == Rule::Kind::row);
    CHECK(compile(RowIs(0, 1, rsp, std::int64_t{1} << 31, rip).saved(rip, -8)).kind == Rule::Kind::row);
    CHECK(compile(RowIs(0, 1, rsp, (std::int64_t{1} << 31) - 1, rip).saved(rip, -8)).kind == Rule::Kind::compact);
    CHECK(compile(RowIs(0, 1, 40, 8, rip).saved(rip, -8)).kind == Rule::Kind::row);
}

TEST_CASE("Rows of the frame-pointer convention") {
    const RowIs standard = RowIs(0, 1, rbp, 16, rip).saved(rip, -8).saved(rbp, -16);
    CHECK(compile(standard).frame_pointer_safe);
    CHECK_FALSE(compile(RowIs(0, 1, rsp, 16, rip).saved(rip, -8).saved(rbp, -16)).frame_pointer_safe);  // not set yet
    CHECK_FALSE(compile(RowIs(0, 1, rbp, 24, rip).saved(rip, -8).saved(rbp, -16)).frame_pointer_safe);
    CHECK_FALSE(compile(RowIs(0, 1, rbp, 16, rip).saved(rip, -8)).frame_pointer_safe);

    CHECK(compile(RowIs(0, 1, 5, 8, 8).saved(8, -4).saved(5, -8), Arch::x86).frame_pointer_safe);
    CHECK_FALSE(compile(RowIs(0, 1, 4, 8, 8).saved(8, -4).saved(5, -8), Arch::x86).frame_pointer_safe);

    CHECK(compile(RowIs(0, 1, 31, 48, 30).saved(29, -48).saved(30, -40), Arch::aarch64).frame_pointer_safe);
    CHECK(compile(RowIs(0, 1, 29, 16, 30).saved(29, -16).saved(30, -8), Arch::aarch64).frame_pointer_safe);
    CHECK_FALSE(compile(RowIs(0, 1, 29, 32, 30).saved(29, -16).saved(30, -8), Arch::aarch64).frame_pointer_safe);
    CHECK_FALSE(compile(RowIs(0, 1, 31, 48, 30).saved(30, -48), Arch::aarch64).frame_pointer_safe);
}

TEST_CASE("Whether the frame pointer is still the caller's") {
    const ArchInfo& arch = arch_info(Arch::x86_64);
    CHECK(leaves_frame_pointer(compile(usual()), arch));
    CHECK(leaves_frame_pointer(compile(usual().saved(rbx, -16)), arch));
    CHECK_FALSE(leaves_frame_pointer(compile(usual().saved(rbp, -16)), arch));
    CHECK_FALSE(leaves_frame_pointer(compile(usual().kind(rbp, Kind::undefined)), arch));
    // After "leave".
    CHECK(leaves_frame_pointer(compile(RowIs(0, 1, rsp, 8, rip).saved(rip, -8).saved(rbp, -16)), arch));
    CHECK_FALSE(leaves_frame_pointer(Rule{}, arch));
}

TEST_CASE("The rule cache keeps as many rules as fit, by their whole keys") {
    RuleCache cache(64 * 64);
    CHECK(cache.memory_bytes() == 64 * 64);
    Rule rule;
    rule.kind = Rule::Kind::compact;
    rule.cfa_offset = 16;
    const RuleKey key(7, 0x1234, false);
    CHECK(cache.find(key) == nullptr);
    cache.put(key, rule);
    REQUIRE(cache.find(key) != nullptr);
    CHECK(*cache.find(key) == rule);
    CHECK(cache.find(RuleKey(7, 0x1234, true)) == nullptr);
    CHECK(cache.find(RuleKey(8, 0x1234, false)) == nullptr);
    CHECK(cache.find(RuleKey(7, 0x1235, false)) == nullptr);
    // A second put under the same key replaces the rule.
    rule.cfa_offset = 24;
    cache.put(key, rule);
    CHECK(cache.find(key)->cfa_offset == 24);
    cache.forget(8);
    CHECK(cache.find(key) != nullptr);
    cache.forget(7);
    CHECK(cache.find(key) == nullptr);

    // The newest rule is always present, and so are most of the last ones, up to half of the places.
    std::size_t kept = 0;
    for (std::uint64_t address = 0; address < 1000; ++address) {
        rule.cfa_offset = static_cast<std::int32_t>(address);
        cache.put(RuleKey(7, address, false), rule);
        REQUIRE(cache.find(RuleKey(7, address, false))->cfa_offset == rule.cfa_offset);
    }
    for (std::uint64_t address = 1000 - 32; address < 1000; ++address) {
        const Rule* found = cache.find(RuleKey(7, address, false));
        if (found == nullptr) continue;
        CHECK(found->cfa_offset == static_cast<std::int32_t>(address));
        ++kept;
    }
    CHECK(kept >= 20);
}

TEST_CASE("The row table evicts the least recently used row") {
    RowTable rows(4);
    const auto row = [](std::uint64_t start) { return FrameRow(RowIs(start, start + 1, rsp, 8, rip)); };
    std::vector<std::uint16_t> slots;
    for (std::uint64_t i = 0; i < 4; ++i) slots.push_back(rows.put(RuleKey(1, i, false), row(i)));
    CHECK(rows.find(slots[0], RuleKey(1, 0, false))->start == 0);  // makes it the most recently used
    const std::uint16_t slot = rows.put(RuleKey(1, 4, false), row(4));
    CHECK(slot == slots[1]);
    CHECK(rows.find(slot, RuleKey(1, 1, false)) == nullptr);
    CHECK(rows.find(slot, RuleKey(1, 4, false))->start == 4);
    CHECK(rows.find(slots[0], RuleKey(1, 0, false)) != nullptr);
    CHECK(rows.find(99, RuleKey(1, 0, false)) == nullptr);
    rows.forget(1);
    CHECK(rows.find(slots[0], RuleKey(1, 0, false)) == nullptr);
}
