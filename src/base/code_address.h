// An address of code as it is in a stack.
#pragma once

#include <compare>
#include <cstdint>

namespace flamewire {

struct CodeAddress {
    std::uint64_t value = 0;
    // True: the address that a callee returns to. False: the instruction that ran or would run next.
    bool return_address = false;

    // Lies in the instruction that ran or made the call. A call can be the last instruction of its function, so the
    // address behind it can belong to another function or line.
    [[nodiscard]] std::uint64_t lookup() const { return value - (return_address ? 1 : 0); }
    auto operator<=>(const CodeAddress&) const = default;
};

}  // namespace flamewire
