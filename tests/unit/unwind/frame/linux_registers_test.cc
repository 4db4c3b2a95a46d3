// Registers of samples. The positions come from uapi/asm/perf_regs.h. On x86, the compiler's own copy of it defines
// them.
#include "unwind/frame/linux_registers.h"

#include <catch2/catch.hpp>

#include <vector>
#if defined(__x86_64__)
#include <asm/perf_regs.h>
#endif

using namespace flamewire::unwind;

namespace {

// The value of each register is its position in the kernel's order.
std::vector<std::uint64_t> numbered(std::uint64_t mask) {
    std::vector<std::uint64_t> values;
    for (std::uint64_t bit = 0; bit < 64; ++bit)
        if ((mask >> bit & 1) != 0) values.push_back(0xdead00000000 + bit);
    return values;
}

}  // namespace

#if defined(__x86_64__)
TEST_CASE("x86-64 registers of a sample") {
    const std::uint64_t mask = sampled_register_mask(Arch::x86_64);
    // The kernel refuses masks with these segment registers. Nothing uses the others.
    for (const int segment : {PERF_REG_X86_DS, PERF_REG_X86_ES, PERF_REG_X86_FS, PERF_REG_X86_GS})
        CHECK((mask >> segment & 1) == 0);
    const auto registers = registers_of_sample(Arch::x86_64, RegisterAbi::bits_64, mask, numbered(mask));
    REQUIRE(registers);
    CHECK(registers->arch() == Arch::x86_64);
    const std::vector<int> in_dwarf_order{
        PERF_REG_X86_AX,  PERF_REG_X86_DX,  PERF_REG_X86_CX,  PERF_REG_X86_BX,  PERF_REG_X86_SI,  PERF_REG_X86_DI,
        PERF_REG_X86_BP,  PERF_REG_X86_SP,  PERF_REG_X86_R8,  PERF_REG_X86_R9,  PERF_REG_X86_R10, PERF_REG_X86_R11,
        PERF_REG_X86_R12, PERF_REG_X86_R13, PERF_REG_X86_R14, PERF_REG_X86_R15, PERF_REG_X86_IP};
    for (std::size_t number = 0; number < in_dwarf_order.size(); ++number)
        CHECK(registers->get(number) == 0xdead00000000 + static_cast<std::uint64_t>(in_dwarf_order[number]));
}

TEST_CASE("32-bit processes on an x86-64 kernel") {
    const std::uint64_t mask = sampled_register_mask(Arch::x86_64);
    const auto registers = registers_of_sample(Arch::x86_64, RegisterAbi::bits_32, mask, numbered(mask));
    REQUIRE(registers);
    CHECK(registers->arch() == Arch::x86);
    const std::vector<int> in_dwarf_order{PERF_REG_X86_AX, PERF_REG_X86_CX, PERF_REG_X86_DX,
                                          PERF_REG_X86_BX, PERF_REG_X86_SP, PERF_REG_X86_BP,
                                          PERF_REG_X86_SI, PERF_REG_X86_DI, PERF_REG_X86_IP};
    for (std::size_t number = 0; number < in_dwarf_order.size(); ++number)
        CHECK(registers->get(number) == static_cast<std::uint64_t>(in_dwarf_order[number]));  // its low 32 bits
    const std::uint64_t mask_32 = sampled_register_mask(Arch::x86);
    CHECK(mask_32 == 0x1ff);
    CHECK(registers_of_sample(Arch::x86, RegisterAbi::bits_32, mask_32, numbered(mask_32)));
}
#endif

TEST_CASE("Arm's registers of a sample") {
    const std::uint64_t mask = sampled_register_mask(Arch::aarch64);
    CHECK(mask == 0x1ffffffff);
    const auto registers = registers_of_sample(Arch::aarch64, RegisterAbi::bits_64, mask, numbered(mask));
    REQUIRE(registers);
    for (std::size_t number = 0; number <= 32; ++number) CHECK(registers->get(number) == 0xdead00000000U + number);
    CHECK(registers->sp() == 0xdead0000001f);
    CHECK(registers->pc() == 0xdead00000020);

    const auto compat = registers_of_sample(Arch::aarch64, RegisterAbi::bits_32, mask, numbered(mask));
    REQUIRE(compat);
    CHECK(compat->arch() == Arch::arm);
    for (std::size_t number = 0; number < 16; ++number) CHECK(compat->get(number) == number);

    CHECK(sampled_register_mask(Arch::arm) == 0xffff);
    const auto arm = registers_of_sample(Arch::arm, RegisterAbi::bits_32, 0xffff, numbered(0xffff));
    REQUIRE(arm);
    CHECK(arm->sp() == 13);
    CHECK(arm->pc() == 15);
}

TEST_CASE("Registers that are missing") {
    const std::uint64_t mask = sampled_register_mask(Arch::aarch64);
    const std::vector<std::uint64_t> values = numbered(mask);
    CHECK_FALSE(registers_of_sample(Arch::aarch64, RegisterAbi::none, mask, values));
    CHECK_FALSE(registers_of_sample(Arch::aarch64, RegisterAbi::bits_64, mask, std::span(values).first(32)));
    CHECK_FALSE(registers_of_sample(Arch::aarch64, RegisterAbi::bits_64, mask & ~(std::uint64_t{1} << 32), values));
    CHECK_FALSE(registers_of_sample(Arch::aarch64, RegisterAbi::bits_64, mask & ~(std::uint64_t{1} << 31), values));
    CHECK_FALSE(registers_of_sample(Arch::aarch64, RegisterAbi{7}, mask, values));
    CHECK_FALSE(registers_of_sample(Arch::arm, RegisterAbi::bits_64, 0xffff, numbered(0xffff)));
    // A mask without some registers.
    const auto few = registers_of_sample(Arch::aarch64, RegisterAbi::bits_64, std::uint64_t{3} << 31,
                                         std::vector<std::uint64_t>{1, 2});
    REQUIRE(few);
    CHECK(few->sp() == 1);
    CHECK(few->pc() == 2);
    CHECK_FALSE(few->has(29));
}
