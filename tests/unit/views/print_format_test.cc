// Print formats of Linux 6.18. Expected texts are those that `perf script` prints for the same values.
#include "views/print_format.h"

#include <catch2/catch.hpp>

#include <random>
#include <string>

using namespace flamewire::views;

namespace {

constexpr std::string_view sched_switch =
    R"("prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%s%s ==> next_comm=%s next_pid=%d next_prio=%d", REC->prev_comm, REC->prev_pid, REC->prev_prio, (REC->prev_state & ((((0x00000000 | 0x00000001 | 0x00000002 | 0x00000004 | 0x00000008 | 0x00000010 | 0x00000020 | 0x00000040) + 1) << 1) - 1)) ? __print_flags(REC->prev_state & ((((0x00000000 | 0x00000001 | 0x00000002 | 0x00000004 | 0x00000008 | 0x00000010 | 0x00000020 | 0x00000040) + 1) << 1) - 1), "|", { 0x00000001, "S" }, { 0x00000002, "D" }, { 0x00000004, "T" }, { 0x00000008, "t" }, { 0x00000010, "X" }, { 0x00000020, "Z" }, { 0x00000040, "P" }, { 0x00000080, "I" }) : "R", REC->prev_state & (((0x00000000 | 0x00000001 | 0x00000002 | 0x00000004 | 0x00000008 | 0x00000010 | 0x00000020 | 0x00000040) + 1) << 1) ? "+" : "", REC->next_comm, REC->next_pid, REC->next_prio)";

ValueStyle style_of(std::string_view format, const std::string& field) { return value_styles(format, {field}).front(); }

}  // namespace

TEST_CASE("the state of a thread that is switched out") {
    const std::vector<ValueStyle> styles = value_styles(sched_switch, {"prev_pid", "prev_state", "next_prio"});
    const ValueStyle& state = styles[1];
    CHECK(state.names.size() == 8);
    CHECK(named_value(state, 0) == "R");
    CHECK(named_value(state, 1) == "S");
    CHECK(named_value(state, 2) == "D");
    CHECK(named_value(state, 3) == "S|D");
    CHECK(named_value(state, 0x100) == "R|0x100");  // preempted: perf script prints R+
    CHECK(styles[0].names.empty());
    CHECK_FALSE(styles[0].hexadecimal);
}

TEST_CASE("symbols and hexadecimal numbers") {
    const ValueStyle vec = style_of(
        R"("vec=%u [action=%s]", REC->vec, __print_symbolic(REC->vec, { 0, "HI" }, { 1, "TIMER" }, { 2, "NET_TX" }))",
        "vec");
    CHECK(named_value(vec, 1) == "TIMER");
    CHECK(named_value(vec, 7).empty());
    CHECK(
        style_of(R"("address=%ps error_code=0x%lx", (void *)REC->address, REC->error_code)", "error_code").hexadecimal);
    CHECK_FALSE(style_of(R"("pid=%d %%x addr=%p", REC->pid, REC->addr)", "pid").hexadecimal);
    CHECK(style_of(R"("pid=%d %%x addr=%p", REC->pid, REC->addr)", "addr").hexadecimal);
}

TEST_CASE("flags whose bits are expressions") {
    const ValueStyle flags = style_of(
        R"("gfp_flags=%s", (REC->gfp_flags) ? __print_flags(REC->gfp_flags, "|", {( unsigned long)((( gfp_t)(((((1UL))) << (10))|((((1UL))) << (11)))) | (( gfp_t)((((1UL))) << (6))) | (( gfp_t)((((1UL))) << (7)))), "GFP_KERNEL"}, {( unsigned long)(( gfp_t)((((1UL))) << (8))), "__GFP_ZERO"}, {( unsigned long)((( gfp_t)(((1UL) << 4) | ((1UL) << 5))) & ~(( gfp_t)((1UL) << 4))), "B5"}, {UNKNOWN_CONSTANT, "LOST"}) : "none")",
        "gfp_flags");
    REQUIRE(flags.names.size() == 3);
    CHECK(flags.names[0].first == (1U << 10 | 1U << 11 | 1U << 6 | 1U << 7));
    CHECK(named_value(flags, 0xcc0) == "GFP_KERNEL");
    CHECK(named_value(flags, 0xdc0) == "GFP_KERNEL|__GFP_ZERO");
    CHECK(named_value(flags, 0x20) == "B5");
    CHECK(named_value(flags, 0xcc1) == "GFP_KERNEL|0x1");
    CHECK(named_value(flags, 0) == "none");
}

TEST_CASE("what is no name of the whole value is left out") {
    CHECK(style_of(R"("%s", __print_symbolic((((REC->ioprio) >> 13) & (8 - 1)), { 0, "none" }, { 1, "rt" }))", "ioprio")
              .names.empty());
    // Two fields in one argument say nothing about either.
    CHECK(style_of(R"("%x", REC->a + REC->b)", "a").names.empty());
    CHECK_FALSE(style_of(R"("%x", REC->a + REC->b)", "a").hexadecimal);
}

TEST_CASE("broken and hostile print formats") {
    for (const char* text :
         {"", "\"", "\"%", "\"%x\"", "\"%s\", __print_flags(REC->a", "\"%s\", __print_flags(REC->a, \"|\", {",
          "\"%s\", __print_symbolic(REC->a, {1, \"x\"", "\"%d\", REC->", ")))", "\"\\", "((((", "\"%d\", (((REC->a"})
        CHECK(value_styles(text, {"a"}).size() == 1);
    const std::string nested(16'000, '(');
    CHECK(value_styles("\"%s\", __print_symbolic(REC->a, {" + nested + "1, \"x\"})", {"a"}).front().names.empty());
    std::mt19937 random(3);
    constexpr std::string_view letters = "(){}<>|&~+-\"%,: x1REC->a_print_flags";
    for (int round = 0; round < 20'000; ++round) {
        std::string text = "\"%s\", __print_flags(REC->a, \"|\", {";
        for (unsigned i = random() % 40; i-- > 0;) text += letters[random() % letters.size()];
        CHECK(value_styles(text, {"a"}).size() == 1);
    }
}
