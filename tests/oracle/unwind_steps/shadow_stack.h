// The true stack, tracked by observing every instruction: a call pushes its return address, a return pops it. Independent
// of unwind tables.
#pragma once

#include <cstdint>
#include <vector>

#include "target.h"

namespace flamewire::steps {

struct TrueFrame {
    std::uint64_t pc = 0, sp = 0;
    bool return_address = false;
};

// A part of a stack that contains frames.
struct StackRange {
    std::uint64_t start = 0, end = 0;
};

class ShadowStack {
public:
    // At an address before any call.
    explicit ShadowStack(const unwind::Registers& registers);

    // Called before and after each step.
    void before(Target& target, const unwind::Registers& registers);
    void after(Target& target, const unwind::Registers& registers, Event event);

    // Innermost first; the first one is the current frame.
    [[nodiscard]] std::vector<TrueFrame> frames(const unwind::Registers& registers) const;
    [[nodiscard]] std::vector<StackRange> stacks(const unwind::Registers& registers) const;
    // The stack pointer has left functions that have not returned: an exception or longjmp has not landed yet. The callers are
    // undefined until then.
    [[nodiscard]] bool unsettled() const { return unsettled_; }

private:
    struct Call {
        std::uint64_t return_to = 0;
        std::uint64_t caller_sp = 0;  // after the return
    };
    // One level for the program, and one for each running signal handler.
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
