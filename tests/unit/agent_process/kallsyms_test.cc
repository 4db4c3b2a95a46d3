#include "agent/process/kallsyms.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "fake_proc.h"

using namespace flamewire::agent;
using flamewire::agent::test::FakeProc;

TEST_CASE("a line of kallsyms") {
    const auto core = parse_kallsyms_line("ffffffff81000040 T startup_64");
    REQUIRE(core);
    CHECK(core->address == 0xffffffff81000040);
    CHECK(core->is_code());
    CHECK(core->name == "startup_64");
    CHECK(core->module.empty());
    const auto module = parse_kallsyms_line("ffffffffc0001000 t ext4_fill\t[ext4]");
    CHECK(module->name == "ext4_fill");
    CHECK(module->module == "ext4");
    CHECK_FALSE(parse_kallsyms_line("ffffffff82000000 D data")->is_code());
    for (const char* line :
         {"", "zz T x", "ffffffff81000040", "ffffffff81000040 ", "ffffffff81000040 T", "ffffffff81000040 T "})
        CHECK_FALSE(parse_kallsyms_line(line));
}

TEST_CASE("the base of kernel addresses is found, hidden or absent") {
    FakeProc proc;
    CHECK_FALSE(read_kernel_base(proc.root()));
    proc.write("proc/kallsyms",
               "0000000000000000 A fixed_percpu_data\nffffffff81000000 T _stext\nffffffff81000000 T _text\n");
    CHECK(read_kernel_base(proc.root()) == KernelBase{0xffffffff81000000, true});
    proc.write("proc/kallsyms", "0000000000000000 A fixed_percpu_data\n0000000000000000 T _text\n");
    CHECK(read_kernel_base(proc.root()) == KernelBase{0, true});
    proc.write("proc/kallsyms", "0000000000001000 T other\n0000000000001000 t _text\t[odd]\n");
    CHECK_FALSE(read_kernel_base(proc.root()));
    // arm64 has _text only if all symbols are kept. Then it comes before _stext.
    proc.write("proc/kallsyms",
               "ffff800008010000 t gic_handle_irq\nffff800008010000 T _stext\nffff800008010000 T "
               "__irqentry_text_start\nffff800008010100 t later\n");
    CHECK(read_kernel_base(proc.root()) == KernelBase{0xffff800008010000, false});
    proc.write("proc/kallsyms", "ffff800008000000 T _text\nffff800008010000 T _stext\n");
    CHECK(read_kernel_base(proc.root()) == KernelBase{0xffff800008000000, true});
    proc.write("proc/kallsyms", "0000000000000000 t gic_handle_irq\n0000000000000000 T _stext\n");
    CHECK(read_kernel_base(proc.root()) == KernelBase{0, false});
}

TEST_CASE("the reason for hidden names and its remedy follow the kernel's own rules") {
    FakeProc proc;
    const auto text_and_remedy = [&](const char* restricted, const char* paranoid) {
        proc.write("proc/sys/kernel/kptr_restrict", restricted);
        proc.write("proc/sys/kernel/perf_event_paranoid", paranoid);
        const auto notice = kernel_names_problem(KernelBase{0, true}, proc.root());
        REQUIRE(notice);
        CHECK(notice->code == "kernel-names-hidden");
        return notice->text.substr(0, notice->text.find(')')) + ") " + notice->remedy;
    };
    const std::string setcap = "setcap cap_perfmon,cap_sys_ptrace,cap_syslog+ep flamewire-agent";
    CHECK(text_and_remedy("0\n", "2\n") ==
          "Kernel names are hidden (kernel.perf_event_paranoid is 2) sysctl -w kernel.perf_event_paranoid=1, or " +
              setcap);
    CHECK(text_and_remedy("1\n", "-1\n") ==
          "Kernel names are hidden (kernel.kptr_restrict is 1) sysctl -w kernel.kptr_restrict=0, or " + setcap);
    CHECK(text_and_remedy("1\n", "2\n") ==
          "Kernel names are hidden (kernel.kptr_restrict is 1) sysctl -w kernel.kptr_restrict=0 "
          "kernel.perf_event_paranoid=1, or " +
              setcap);
    CHECK(text_and_remedy("2\n", "4\n") ==
          "Kernel names are hidden (kernel.kptr_restrict is 2) sysctl -w kernel.kptr_restrict=1, and run the agent as "
          "root, or " +
              setcap);
    CHECK_FALSE(kernel_names_problem(KernelBase{1, true}, proc.root()));
    CHECK(kernel_names_problem(std::nullopt, proc.root())->code == "kernel-names-missing");
}

TEST_CASE("functions that contain addresses, found in one pass, in any order") {
    FakeProc proc;
    proc.write("proc/kallsyms",
               "0000000000002000 t beta\n"
               "0000000000001000 t __alpha_alias\n"
               "0000000000001000 T alpha\n"
               "0000000000001800 d not_code\n"
               "0000000000003000 T gamma\n"
               "0000000000002000 t __beta_alias\n"
               "0000000000900000 t mod_last\t[mod]\n"
               "0000000000800000 t mod_first\t[mod]\n"
               "garbage\n");
    const auto functions = [&](std::vector<std::uint64_t> addresses) {
        auto pass = FunctionPass::begin(proc.root(), std::move(addresses)).value();
        REQUIRE(pass.advance(UINT64_MAX).value());
        return pass.functions();
    };
    const auto found = functions({0x2fff, 0x1001, 0x1fff, 0x2000, 0x800010, 0xfff, 0x900001, 0x700000});
    REQUIRE(found.size() == 4);
    CHECK(found[0] == KernelFunction{0x1000, 0x1000, "alpha"});
    CHECK(found[1] == KernelFunction{0x2000, 0x1000, "beta"});
    CHECK(found[2] == KernelFunction{0x800000, 0x100000, "mod_first [mod]"});
    // Nothing follows, so it has the maximum length of a function. 0x700000 is too far from gamma, and 0xfff is below
    // all.
    CHECK(found[3] == KernelFunction{0x900000, 0x100000, "mod_last [mod]"});
    CHECK(functions({}).empty());
    CHECK_FALSE(FunctionPass::begin(proc.root() + "/none", {1}));
}

TEST_CASE("a pass over many functions continues where its time slice ended") {
    FakeProc proc;
    std::string text;
    for (int i = 0; i < 10'000; ++i) text += fmt::format("{:016x} t function_{}\n", 0x1000 + i * 16, i);
    proc.write("proc/kallsyms", text);
    auto pass = FunctionPass::begin(proc.root(), {0x1000, 0x1000 + 9'000 * 16 + 3}).value();
    int pieces = 1;
    while (!pass.advance(0).value()) ++pieces;
    CHECK(pieces > 100);
    REQUIRE(pass.functions().size() == 2);
    CHECK(pass.functions()[1].name == "function_9000");
}
