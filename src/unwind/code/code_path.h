// Executes code with symbolic values: an initial register value plus a constant, or a word of the stack.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "unwind/code/code_effect.h"
#include "unwind/code/follow_code.h"

namespace flamewire::unwind {

// Includes pc, on any architecture.
inline constexpr std::uint8_t most_registers = 17;

constexpr bool has(std::uint32_t mask, std::uint8_t number) { return (mask >> number & 1) != 0; }

// The symbolic value of a register or a word of memory.
struct Value {
    enum class Kind : std::uint8_t { unknown, address, stored };  // base + add; the word at base + add
    Kind kind = Kind::unknown;
    std::uint8_t reg = 0;  // base: this register at the start; if `indirect`, the word at register + at
    bool indirect = false;
    std::int64_t at = 0;
    std::int64_t add = 0;
    bool operator==(const Value&) const = default;

    [[nodiscard]] bool same_base(const Value& other) const {
        return reg == other.reg && indirect == other.indirect && at == other.at;
    }
    // Converts to an address if possible: only words of the stack are taken for stack pointers.
    [[nodiscard]] Value as_address(const CodeConvention& convention) const;
};

constexpr Value initial(std::uint8_t number) { return {.kind = Value::Kind::address, .reg = number}; }

struct Store {
    Value where;  // an address
    Value what;
};

// A path through code, and the state before its instruction at `at`.
struct CodePath {
    std::uint64_t at = 0;
    std::array<Value, most_registers> registers{};
    std::vector<Store> stores{};
    bool called = false;   // a function was called on this path
    bool guessed = false;  // it is a guess that this path is taken

    CodePath() = default;
    // `return_address`: a call ends at `start`, so registers that a call may change are unknown.
    CodePath(const CodeConvention& convention, std::uint64_t start, bool return_address);

    [[nodiscard]] Value load(const Value& where) const;
};

enum class StepResult : std::uint8_t { continues, returns, may_have_returned, ends };

// Whether the instruction pushes the link register.
bool pushes_link(const CodeConvention& convention, const CodeEffect& effect);
// Sets the caller's registers after a return, or after a jump to a function that returns to the same caller.
void return_to_caller(const CodeConvention& convention, CodePath& path);
// Executes one instruction. `returns`: `path` has the caller's registers, including pc. `may_have_returned`: the target
// is unknown, for example a tail call to a function that returns to the same caller.
StepResult run(const CodeConvention& convention, CodePath& path, const CodeEffect& effect);

}  // namespace flamewire::unwind
