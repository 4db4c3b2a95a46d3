// Frames of the kernel and of the frame-pointer convention. The memory is laid out by hand or by this machine's kernel.
#include "unwind/arch/arch.h"

#include <catch2/catch.hpp>

#include <csignal>
#include <cstddef>
#include <cstring>
#include <map>
#include <vector>
#if defined(__x86_64__)
#include <ucontext.h>
#endif

using namespace flamewire::unwind;

namespace {

struct Words {
    std::map<std::uint64_t, std::uint64_t> values;
    [[nodiscard]] MemoryReader reader() const {
        return [this](std::uint64_t address, std::uint8_t) -> std::optional<std::uint64_t> {
            const auto found = values.find(address);
            return found == values.end() ? std::nullopt : std::optional(found->second);
        };
    }
};

std::vector<std::byte> code_of(std::initializer_list<unsigned char> bytes) {
    std::vector<std::byte> code;
    for (const unsigned char byte : bytes) code.push_back(std::byte{byte});
    return code;
}

}  // namespace

TEST_CASE("Every architecture's register numbers fit its registers") {
    for (const Arch arch : {Arch::x86_64, Arch::x86, Arch::aarch64, Arch::arm}) {
        const ArchInfo& info = arch_info(arch);
        CHECK(info.names.count <= max_registers);
        CHECK(info.names.sp < info.names.count);
        CHECK(info.names.pc < info.names.count);
        CHECK(&register_names(arch) == &info.names);
        bool keeps_frame_pointer = false;
        for (std::size_t i = 0; i < info.preserved_count; ++i)
            keeps_frame_pointer |= info.preserved[i] == info.names.frame_pointer;
        CHECK(keeps_frame_pointer);
    }
}

TEST_CASE("x86-64 by frame pointer") {
    const ArchInfo& arch = arch_info(Arch::x86_64);
    Registers registers(Arch::x86_64);
    registers.set(7, 0x1000);
    registers.set(6, 0x1010);
    registers.set(3, 5);
    Words words{{{0x1010, 0x1050}, {0x1018, 0x400123}}};
    const auto caller = arch.by_frame_pointer(registers, words.reader());
    REQUIRE(caller);
    CHECK(caller->pc() == 0x400123);
    CHECK(caller->sp() == 0x1020);
    CHECK(caller->get(6) == 0x1050);
    CHECK_FALSE(caller->has(3));
    registers.set(6, 0x1011);
    CHECK_FALSE(arch.by_frame_pointer(registers, words.reader()));
    registers.set(6, 0xff8);
    CHECK_FALSE(arch.by_frame_pointer(registers, words.reader()));
    registers.set(6, 0x1018);
    CHECK_FALSE(arch.by_frame_pointer(registers, words.reader()));
    registers.forget(6);
    CHECK_FALSE(arch.by_frame_pointer(registers, words.reader()));
}

TEST_CASE("32-bit x86 by frame pointer") {
    const ArchInfo& arch = arch_info(Arch::x86);
    Registers registers(Arch::x86);
    registers.set(4, 0x1000);
    registers.set(5, 0x1008);
    const Words words{{{0x1008, 0x1050}, {0x100c, 0x8048123}}};
    const auto caller = arch.by_frame_pointer(registers, words.reader());
    REQUIRE(caller);
    CHECK(caller->pc() == 0x8048123);
    CHECK(caller->sp() == 0x1010);
    CHECK(caller->get(5) == 0x1050);
}

TEST_CASE("aarch64 by frame pointer gives no stack pointer of the caller") {
    const ArchInfo& arch = arch_info(Arch::aarch64);
    Registers registers(Arch::aarch64);
    registers.set(31, 0x1000);
    registers.set(29, 0x1010);
    const Words words{{{0x1010, 0x1050}, {0x1018, 0x400123}}};
    const auto caller = arch.by_frame_pointer(registers, words.reader());
    REQUIRE(caller);
    CHECK(caller->pc() == 0x400123);
    CHECK_FALSE(caller->has(31));
    CHECK(caller->get(29) == 0x1050);
}

TEST_CASE("Return-from-signal code") {
    const auto is = [](Arch arch, const std::vector<std::byte>& code) {
        return arch_info(arch).is_signal_return(code);
    };
    const auto by_rax = code_of({0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05, 0x90});
    CHECK(is(Arch::x86_64, by_rax));
    CHECK(is(Arch::x86_64, code_of({0xb8, 15, 0, 0, 0, 0x0f, 0x05})));
    CHECK_FALSE(is(Arch::x86_64, code_of({0x48, 0xc7, 0xc0, 14, 0, 0, 0, 0x0f, 0x05})));
    CHECK_FALSE(is(Arch::x86_64, {by_rax.begin(), by_rax.begin() + 8}));
    CHECK_FALSE(is(Arch::x86_64, {}));
    CHECK(is(Arch::x86, code_of({0x58, 0xb8, 119, 0, 0, 0, 0xcd, 0x80})));
    CHECK(is(Arch::x86, code_of({0xb8, 173, 0, 0, 0, 0xcd, 0x80})));
    CHECK_FALSE(is(Arch::x86, by_rax));
    CHECK(is(Arch::aarch64, code_of({0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4})));
    CHECK_FALSE(is(Arch::aarch64, code_of({0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00})));
}

TEST_CASE("aarch64's signal frame") {
    // After 128 bytes of siginfo: ucontext with flags, link, stack (24), signal set (128), padding to 176. Then come
    // the fault address, x0 to x30, sp and pc.
    Words words;
    for (std::uint64_t i = 0; i < 33; ++i) words.values[0x5000 + 128 + 176 + 8 + 8 * i] = 0x100 + i;
    Registers registers(Arch::aarch64);
    registers.set(31, 0x5000);
    const auto code = code_of({0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4});
    const auto interrupted = arch_info(Arch::aarch64).by_signal_frame(registers, code, words.reader());
    REQUIRE(interrupted);
    for (std::size_t number = 0; number < 33; ++number) CHECK(interrupted->get(number) == 0x100 + number);
    CHECK_FALSE(arch_info(Arch::aarch64).by_signal_frame(registers, {}, words.reader()));
    words.values.erase(0x5000 + 128 + 176 + 8 + 8 * 32);
    CHECK_FALSE(arch_info(Arch::aarch64).by_signal_frame(registers, code, words.reader()));
}

TEST_CASE("32-bit x86's two signal frames") {
    // struct sigcontext_32: gs fs es ds di si bp sp bx dx cx ax trapno err ip, 4 bytes each.
    const auto put_context = [](Words& words, std::uint64_t at) {
        for (std::uint64_t i = 0; i < 15; ++i) words.values[at + 4 * i] = 0x100 + i;
    };
    const auto check = [](const std::optional<Registers>& interrupted) {
        REQUIRE(interrupted);
        CHECK(interrupted->get(7) == 0x104);
        CHECK(interrupted->get(6) == 0x105);
        CHECK(interrupted->get(5) == 0x106);
        CHECK(interrupted->get(4) == 0x107);
        CHECK(interrupted->get(3) == 0x108);
        CHECK(interrupted->get(2) == 0x109);
        CHECK(interrupted->get(1) == 0x10a);
        CHECK(interrupted->get(0) == 0x10b);
        CHECK(interrupted->get(8) == 0x10e);
    };
    Registers registers(Arch::x86);
    registers.set(4, 0x5000);
    Words plain;
    put_context(plain, 0x5004);  // after the signal number
    check(arch_info(Arch::x86).by_signal_frame(registers, code_of({0x58, 0xb8, 119, 0, 0, 0, 0xcd, 0x80}),
                                               plain.reader()));
    Words rt;
    rt.values[0x5008] = 0x6000;  // signal number, siginfo, ucontext
    put_context(rt, 0x6000 + 20);
    check(arch_info(Arch::x86).by_signal_frame(registers, code_of({0xb8, 173, 0, 0, 0, 0xcd, 0x80}), rt.reader()));
}

#if defined(__x86_64__)
namespace {
std::optional<Registers> by_kernel_frame;
ucontext_t libc_context;

void handler(int, siginfo_t*, void* context) {
    // The handler returns to the restorer with sp at the ucontext.
    std::memcpy(&libc_context, context, sizeof libc_context);
    Registers registers(Arch::x86_64);
    registers.set(7, reinterpret_cast<std::uint64_t>(context));
    static const auto code = code_of({0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05});
    by_kernel_frame =
        arch_info(Arch::x86_64).by_signal_frame(registers, code, [](std::uint64_t address, std::uint8_t size) {
            std::uint64_t value = 0;
            std::memcpy(&value, reinterpret_cast<const void*>(address), size);
            return std::optional(value);
        });
}
}  // namespace

TEST_CASE("x86-64's signal frame, as this machine's kernel builds it") {
    struct sigaction action{};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO;
    struct sigaction before{};
    REQUIRE(::sigaction(SIGUSR1, &action, &before) == 0);
    REQUIRE(::raise(SIGUSR1) == 0);
    REQUIRE(::sigaction(SIGUSR1, &before, nullptr) == 0);
    REQUIRE(by_kernel_frame);
    const std::vector<int> in_dwarf_order{REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                                          REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                          REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
    for (std::size_t number = 0; number < in_dwarf_order.size(); ++number)
        CHECK(by_kernel_frame->get(number) ==
              static_cast<std::uint64_t>(libc_context.uc_mcontext.gregs[in_dwarf_order[number]]));
}
#endif
