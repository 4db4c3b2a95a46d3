// Readers of the target's memory and of a module's code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

namespace flamewire::unwind {

// Reads `size` bytes (1 to 8) of the target's memory as a number.
using MemoryReader = std::function<std::optional<std::uint64_t>(std::uint64_t address, std::uint8_t size)>;

// Fills `out` with a module's bytes from `address`. Returns false if they are not all available.
using CodeReader = std::function<bool(std::uint64_t address, std::span<std::byte> out)>;

}  // namespace flamewire::unwind
