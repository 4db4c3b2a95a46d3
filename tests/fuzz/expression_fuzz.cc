// Arbitrary bytes as a DWARF expression: it evaluates or fails within its bounds, for any registers and memory.
#include <cstddef>
#include <cstdint>

#include "unwind/frame/expression.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace flamewire;
    using namespace flamewire::unwind;
    if (size == 0) return 0;
    constexpr Arch archs[] = {Arch::x86_64, Arch::x86, Arch::aarch64, Arch::arm};
    const std::uint8_t choice = data[0];
    Registers registers(archs[choice & 3]);
    for (std::size_t number = 0; number < max_registers; number += 1 + (choice >> 2 & 1))
        registers.set(number, number * 0x1111111111111111);
    const MemoryReader read = [choice](std::uint64_t address, std::uint8_t bytes) -> std::optional<std::uint64_t> {
        if (bytes == 0 || bytes > 8) __builtin_trap();
        if ((choice & 8) != 0 && address % 3 == 0) return std::nullopt;
        return address * 0x9e3779b97f4a7c15;
    };
    const Bytes code(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
    const std::optional<std::uint64_t> initial = (choice & 16) != 0 ? std::optional(registers.sp()) : std::nullopt;
    const auto value = evaluate(code, registers, read, initial, 0x1000, (choice & 32) != 0);
    if (value && register_names(registers.arch()).word_size == 4 && *value > 0xffffffffu) __builtin_trap();
    return 0;
}
