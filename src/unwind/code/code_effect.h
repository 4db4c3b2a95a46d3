// The effect of one instruction on the stack pointer, on callee-saved registers and on control flow.
#pragma once

#include <cstdint>

namespace flamewire::unwind {

struct CodeEffect {
    enum class Kind : std::uint8_t {
        none,        // does not touch the stack; the next instruction follows
        push,        // sp -= bytes; the registers in `mask` are stored there, the lowest at sp
        pop,         // loads the registers in `mask` from sp, lowest first; sp += bytes; returns if pc is in `mask`
        add,         // sp += bytes
        copy_to,     // reg = sp + bytes
        copy_from,   // sp = reg + bytes
        add_to,      // reg += bytes
        compute_sp,  // sp = a value that is only known at run time
        forget,      // reg = a value that is only known at run time
        load,        // reg = the word at base + bytes
        store,       // the word at base + bytes = reg
        leave,       // sp = reg, then like pop
        returns,     // returns through the link register
        jump,        // to this instruction's address + bytes
        branch,      // may jump there; with 0 bytes: a conditional return, or the next instructions are conditional
        call,        // assumed to return
        indirect,    // jumps to the address in a register or in memory: tail calls, linker stubs, switches
        other,       // may change sp in another way, or jump elsewhere
    };
    Kind kind = Kind::other;
    std::uint8_t reg = 0, base = 0;
    std::uint8_t size = 4;  // of the instruction
    std::uint32_t mask = 0;
    std::int64_t bytes = 0;
};

}  // namespace flamewire::unwind
