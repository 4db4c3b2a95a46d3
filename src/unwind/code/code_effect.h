// What one instruction does to the stack pointer and to the registers that a function saves, and where it goes.
#pragma once

#include <cstdint>

namespace flamewire::unwind {

struct CodeEffect {
    enum class Kind : std::uint8_t {
        none,        // nothing to the stack, and the next instruction follows
        push,        // sp -= bytes; the registers in `mask` lie there, the lowest at sp
        pop,         // the registers in `mask` lie at sp, the lowest first; sp += bytes; with pc among them it returns
        add,         // sp += bytes
        copy_to,     // reg = sp + bytes
        copy_from,   // sp = reg + bytes
        add_to,      // reg += bytes
        compute_sp,  // sp = something that is known at run time
        forget,      // reg = the same
        load,        // reg = the word at base + bytes
        store,       // the word at base + bytes = reg
        leave,       // sp = reg, then as pop
        returns,     // through the link register
        jump,        // to this instruction's address + bytes
        branch,      // there maybe; with 0 bytes: a conditional return, or what follows is conditional
        call,        // which returns, as a rule
        indirect,    // to the address in a register or in memory: tail calls, linkers' trampolines, switches
        other,       // may change sp in another way, or go elsewhere
    };
    Kind kind = Kind::other;
    std::uint8_t reg = 0, base = 0;
    std::uint8_t size = 4;  // of the instruction
    std::uint32_t mask = 0;
    std::int64_t bytes = 0;
};

}  // namespace flamewire::unwind
