// How a walk handles 32-bit ARM without tables: signal frames, frame pointers and the kernel's convention. Frames are
// laid out by hand from the conventions of the kernel and the compilers.
#include <catch2/catch.hpp>

#include <array>
#include <initializer_list>
#include <map>
#include <vector>

#include "unwind/arch/arch.h"

using namespace flamewire::unwind;

namespace {

// Memory in halfwords, because Thumb instructions are halfwords.
struct Memory {
    std::map<std::uint64_t, std::uint16_t> halves;

    void word(std::uint64_t address, std::uint32_t value) {
        halves[address] = static_cast<std::uint16_t>(value);
        halves[address + 2] = static_cast<std::uint16_t>(value >> 16);
    }
    void half(std::uint64_t address, std::uint32_t value) { halves[address] = static_cast<std::uint16_t>(value); }
    [[nodiscard]] MemoryReader reader() const {
        return [this](std::uint64_t address, std::uint8_t size) -> std::optional<std::uint64_t> {
            std::uint64_t value = 0;
            for (unsigned at = 0; at < size; at += 2) {
                const auto found = halves.find(address + at);
                if (found == halves.end()) return {};
                value |= std::uint64_t{found->second} << at * 8;
            }
            return value;
        };
    }
};

std::vector<std::byte> code(std::initializer_list<unsigned> bytes) {
    std::vector<std::byte> result;
    for (const unsigned byte : bytes) result.push_back(static_cast<std::byte>(byte));
    return result;
}

constexpr std::uint64_t stack = 0xbe000000, arm_call = 0x10000, thumb_call = 0x20000;

// Code with calls that end at these addresses and nowhere else.
Memory memory_with_calls() {
    Memory memory;
    memory.word(arm_call - 4, 0xeb00123f);  // bl
    memory.half(thumb_call - 4, 0xf000);    // bl, in two halves
    memory.half(thumb_call - 2, 0xf812);
    memory.word(0x30000 - 4, 0xe12fff33);  // blx r3
    memory.half(0x40000 - 4, 0x4618);      // mov r0, r3
    memory.half(0x40000 - 2, 0x4798);      // blx r3
    memory.word(0x50000 - 4, 0xe1a00003);  // mov r0, r3: no call
    memory.word(0x60000 - 4, 0xfa000010);  // blx to Thumb code
    return memory;
}

Registers with(std::uint8_t number, std::uint64_t value) {
    Registers registers(Arch::arm);
    registers.set(13, stack);
    registers.set(15, 0x8000);
    registers.set(number, value);
    return registers;
}

}  // namespace

TEST_CASE("arch_arm: names") {
    CHECK(arch_arm.names.sp == 13);
    CHECK(arch_arm.names.pc == 15);
    CHECK(arch_arm.names.link == 14);
    CHECK(arch_arm.names.return_column == 14);
    CHECK(arch_arm.names.word_size == 4);
    CHECK(&arch_info(Arch::arm) == &arch_arm);
}

TEST_CASE("arch_arm: the kernel's convention is the APCS frame") {
    FrameRow row;
    row.return_column = 14;
    row.cfa_register = 11;
    row.cfa_offset = 4;
    row.registers[11] = {.kind = RegisterRule::Kind::at_cfa, .offset = -16};
    row.registers[14] = {.kind = RegisterRule::Kind::at_cfa, .offset = -8};
    CHECK(arch_arm.frame_pointer_row(row));
    row.cfa_register = 7;
    CHECK_FALSE(arch_arm.frame_pointer_row(row));
    row.cfa_register = 11;
    row.registers[11].offset = -8;  // "push {fp, lr}; add fp, sp, #4": the kernel would read elsewhere
    CHECK_FALSE(arch_arm.frame_pointer_row(row));
}

TEST_CASE("arch_arm: frame pointers of three layouts") {
    const std::uint64_t frame = stack + 0x40, outer = stack + 0x100;
    Memory memory = memory_with_calls();

    SECTION("clang: points at the pair") {
        memory.word(frame, outer);
        for (const std::uint64_t call :
             {arm_call, thumb_call + 1, std::uint64_t{0x30000}, std::uint64_t{0x40001}, std::uint64_t{0x60000}}) {
            memory.word(frame + 4, static_cast<std::uint32_t>(call));
            for (const std::uint8_t number : {std::uint8_t{11}, std::uint8_t{7}}) {
                INFO("call " << call << " register " << unsigned{number});
                const auto caller = arch_arm.by_frame_pointer(with(number, frame), memory.reader());
                REQUIRE(caller);
                CHECK(caller->pc() == (call & ~std::uint64_t{1}));
                CHECK(caller->sp() == frame + 8);
                CHECK(caller->get(number) == outer);
                CHECK_FALSE(caller->has(14));
                CHECK_FALSE(caller->has(4));
            }
        }
    }
    SECTION("gcc in ARM code: points at the saved lr") {
        memory.word(frame - 4, outer);
        memory.word(frame, arm_call);
        memory.word(frame + 4, 0x12345678);
        const auto caller = arch_arm.by_frame_pointer(with(11, frame), memory.reader());
        REQUIRE(caller);
        CHECK(caller->pc() == arm_call);
        CHECK(caller->sp() == frame + 4);
        CHECK(caller->get(11) == outer);
        CHECK_FALSE(arch_arm.by_frame_pointer(with(7, frame), memory.reader()));
    }
    SECTION("APCS: fp, sp, lr, pc below it; a variadic function pushed its arguments first") {
        memory.word(frame - 12, outer);
        memory.word(frame - 8, frame + 4 + 16);
        memory.word(frame - 4, arm_call);
        memory.word(frame, 0x8010);
        const auto caller = arch_arm.by_frame_pointer(with(11, frame), memory.reader());
        REQUIRE(caller);
        CHECK(caller->pc() == arm_call);
        CHECK(caller->sp() == frame + 20);
        CHECK(caller->get(11) == outer);
    }
    SECTION("the outermost function's frame pointer is zero") {
        memory.word(frame, 0);
        memory.word(frame + 4, arm_call);
        REQUIRE(arch_arm.by_frame_pointer(with(11, frame), memory.reader()));
    }
}

TEST_CASE("arch_arm: a register that is not a frame pointer") {
    const std::uint64_t frame = stack + 0x40;
    Memory memory = memory_with_calls();
    memory.word(frame, stack + 0x100);
    memory.word(frame + 4, arm_call);
    REQUIRE(arch_arm.by_frame_pointer(with(11, frame), memory.reader()));
    CHECK_FALSE(arch_arm.by_frame_pointer(with(11, frame + 2), memory.reader()));  // not aligned
    CHECK_FALSE(arch_arm.by_frame_pointer(with(11, stack - 8), memory.reader()));  // below the stack pointer
    CHECK_FALSE(arch_arm.by_frame_pointer(with(11, 0x100), memory.reader()));
    CHECK_FALSE(arch_arm.by_frame_pointer(with(4, frame), memory.reader()));  // r11 and r7 are unknown
    memory.word(frame + 4, 0x50000);
    // The return address does not follow a call.
    CHECK_FALSE(arch_arm.by_frame_pointer(with(11, frame), memory.reader()));
    memory.word(frame + 4, arm_call + 1);
    CHECK_FALSE(arch_arm.by_frame_pointer(with(11, frame), memory.reader()));  // not as Thumb code either
    memory.word(frame + 4, 0x70000);
    CHECK_FALSE(arch_arm.by_frame_pointer(with(11, frame), memory.reader()));  // returns to code that cannot be read
    memory.word(frame + 4, arm_call);
    memory.word(frame, frame - 0x10);
    CHECK_FALSE(arch_arm.by_frame_pointer(with(11, frame), memory.reader()));  // leads inwards
}

TEST_CASE("arch_arm: return-from-signal code") {
    // "mov r7, #119; svc 0", "mov r7, #173; svc 0" and the forms with the number in the instruction.
    CHECK(arch_arm.is_signal_return(code({0x77, 0x70, 0xa0, 0xe3, 0x00, 0x00, 0x00, 0xef})));
    CHECK(arch_arm.is_signal_return(code({0xad, 0x70, 0xa0, 0xe3, 0x00, 0x00, 0x00, 0xef})));
    CHECK(arch_arm.is_signal_return(code({0x77, 0x70, 0xa0, 0xe3, 0x77, 0x00, 0x90, 0xef})));
    CHECK(arch_arm.is_signal_return(code({0xad, 0x00, 0x90, 0xef})));
    // Thumb: movs r7 or mov.w r7, then svc 0.
    CHECK(arch_arm.is_signal_return(code({0x77, 0x27, 0x00, 0xdf})));
    CHECK(arch_arm.is_signal_return(code({0xad, 0x27, 0x00, 0xdf})));
    CHECK(arch_arm.is_signal_return(code({0x4f, 0xf0, 0xad, 0x07, 0x00, 0xdf})));
    // Other system calls, and truncated code.
    CHECK_FALSE(arch_arm.is_signal_return(code({0x78, 0x27, 0x00, 0xdf})));
    CHECK_FALSE(arch_arm.is_signal_return(code({0x01, 0x70, 0xa0, 0xe3, 0x00, 0x00, 0x00, 0xef})));
    CHECK_FALSE(arch_arm.is_signal_return(code({0x77, 0x70, 0xa0, 0xe3})));
    CHECK_FALSE(arch_arm.is_signal_return(code({0x77, 0x70, 0xa0, 0xe3, 0x00, 0x00, 0xa0, 0xe1})));
    CHECK_FALSE(arch_arm.is_signal_return(code({0x00, 0xdf})));
    CHECK_FALSE(arch_arm.is_signal_return({}));
}

TEST_CASE("arch_arm: the interrupted registers in a signal frame") {
    const auto sigreturn = code({0x77, 0x70, 0xa0, 0xe3, 0x00, 0x00, 0x00, 0xef});
    const auto rt_sigreturn = code({0xad, 0x27, 0x00, 0xdf});
    Memory memory;
    std::uint64_t first = 0;
    std::vector<std::byte> trampoline;
    Registers registers = with(7, 0);
    SECTION("sigreturn") {
        memory.word(stack, 0x5ac3c35a);
        first = stack + 20 + 12;
        trampoline = sigreturn;
    }
    SECTION("sigreturn, before Linux 2.6.18") {
        memory.word(stack, 0);
        first = stack + 12;
        trampoline = sigreturn;
    }
    SECTION("rt_sigreturn") {
        memory.word(stack, 11);  // si_signo
        first = stack + 128 + 20 + 12;
        trampoline = rt_sigreturn;
    }
    SECTION("rt_sigreturn, before Linux 2.6.18") {
        memory.word(stack, stack + 8);
        first = stack + 8 + 128 + 20 + 12;
        trampoline = rt_sigreturn;
    }
    SECTION("at the svc itself, with the number in r7") {
        memory.word(stack, 11);
        first = stack + 128 + 20 + 12;
        trampoline = code({0x00, 0xdf});
        registers.set(7, 173);
    }
    for (unsigned number = 0; number < 16; ++number) memory.word(first + number * 4, 0x1001u * (number + 1));
    const auto interrupted = arch_arm.by_signal_frame(registers, trampoline, memory.reader());
    REQUIRE(interrupted);
    for (unsigned number = 0; number < 15; ++number) CHECK(interrupted->get(number) == 0x1001u * (number + 1));
    CHECK(interrupted->pc() == 0x10010);

    memory.halves.erase(first + 60);
    CHECK_FALSE(arch_arm.by_signal_frame(registers, trampoline, memory.reader()));
    CHECK_FALSE(arch_arm.by_signal_frame(registers, code({0x70, 0x47}), memory.reader()));
}
