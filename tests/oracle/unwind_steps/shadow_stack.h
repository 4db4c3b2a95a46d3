// What the stack really is, kept by watching every instruction: a call puts its return address on it, a return takes it
// off. Knows nothing of unwind tables.
#pragma once

#include <cstdint>
#include <vector>

#include "target.h"

namespace flamewire::steps {

struct TrueFrame {
    std::uint64_t pc = 0, sp = 0;
    bool return_address = false;
};

// Part of a stack that frames are on.
struct StackRange {
    std::uint64_t start = 0, end = 0;
};

class ShadowStack {
public:
    // At a place where nothing has been called yet.
    explicit ShadowStack(const unwind::Registers& registers);

    // Before and after each step.
    void before(Target& target, const unwind::Registers& registers);
    void after(Target& target, const unwind::Registers& registers, Event event);

    // Innermost first; the first is where the program is.
    [[nodiscard]] std::vector<TrueFrame> frames(const unwind::Registers& registers) const;
    [[nodiscard]] std::vector<StackRange> stacks(const unwind::Registers& registers) const;
    // The stack pointer has left functions that have not returned: an exception or longjmp is on its way to where it
    // will land. What the callers are is not defined until it has.
    [[nodiscard]] bool unsettled() const { return unsettled_; }

private:
    struct Call {
        std::uint64_t return_to = 0;
        std::uint64_t caller_sp = 0;  // after the return
    };
    // One for the program, one for each signal handler that runs.
    struct Level {
        std::vector<Call> calls;
        std::uint64_t stack_end = 0;
        std::uint64_t interrupted_pc = 0, interrupted_sp = 0;
    };
    enum class Kind : std::uint8_t { other, call, ret, jump, sigreturn };

    static Kind kind_x86(Target& target, const unwind::Registers& registers);
    static Kind kind_aarch64(Target& target, const unwind::Registers& registers);
    static Kind kind_arm(Target& target, const unwind::Registers& registers);
    std::uint64_t signal_frame(Target& target, const unwind::Registers& registers) const;
    void enter_handler(Target& target, const unwind::Registers& registers);
    bool called(Target& target, const unwind::Registers& registers);
    void leave(std::uint64_t sp, bool equal_too);
    void after_x86(std::uint64_t sp);
    void after_risc(std::uint64_t pc, std::uint64_t sp);

    unwind::Arch arch_;
    std::vector<Level> levels_{1};
    std::uint64_t pc_ = 0, sp_ = 0;  // before the step
    Kind kind_ = Kind::other;
    bool unsettled_ = false, left_ = false;
};

}  // namespace flamewire::steps
