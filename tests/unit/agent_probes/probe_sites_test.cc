// Arguments of functions in registers. Source: System V AMD64 ABI 3.2.3, Intel386 psABI 2.2.3, AAPCS64 6.8.2, AAPCS32 6.5.
#include <catch2/catch.hpp>
#include <elf.h>

#include <array>
#include <string_view>

#include "agent/probes/probe_arguments.h"

using namespace flamewire::agent;

TEST_CASE("registers of arguments") {
    CHECK(with_argument_registers("$arg1", EM_X86_64) == "%di");
    CHECK(with_argument_registers("$arg6:u32", EM_X86_64) == "%r9:u32");
    CHECK(with_argument_registers("+0(+8($arg2)):string", EM_X86_64) == "+0(+8(%si)):string");
    CHECK(with_argument_registers("$arg3", EM_AARCH64) == "%x2");
    CHECK(with_argument_registers("$arg4", EM_ARM) == "%r3");
    CHECK(with_argument_registers("$arg5", EM_ARM) == "+0(%sp)");
    CHECK(with_argument_registers("$arg1", EM_386) == "+4(%sp)");
    CHECK(with_argument_registers("%ax:s8", EM_S390) == "%ax:s8");
    CHECK(with_argument_registers("$comm", EM_X86_64) == "$comm");
    for (const char* unknown : {"$arg0", "$arg7", "$arg", "$arg12", "$argx", "$retval"})
        CHECK_FALSE(with_argument_registers(unknown, EM_X86_64));
    CHECK_FALSE(with_argument_registers("$arg1", EM_S390));
}

TEST_CASE("registers of results") {
    CHECK(with_result_register("$retval", EM_X86_64) == "%ax");
    CHECK(with_result_register("+8($retval):u32", EM_AARCH64) == "+8(%x0):u32");
    CHECK(with_result_register("$retval:s32", EM_ARM) == "%r0:s32");
    CHECK(with_result_register("%dx:s32", EM_386) == "%dx:s32");
    CHECK_FALSE(with_result_register("$arg1", EM_X86_64));
    CHECK_FALSE(with_result_register("$retval", EM_S390));
}

TEST_CASE("operands of a USDT probe") {
    const std::array<std::string_view, 3> operands{"%bp", "", "-8(%bp)"};
    CHECK(with_arguments("+0($arg3):string", operands) == "+0(-8(%bp)):string");
    CHECK(with_arguments("$arg1:u32", operands) == "%bp:u32");
    CHECK_FALSE(with_arguments("$arg2", operands));  // not available, for example a floating point number
    CHECK_FALSE(with_arguments("$arg4", operands));
}
