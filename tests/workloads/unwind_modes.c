/* A program of many functions that reaches its leaf by its own chain of calls, or through a function of another file
 * (unwind_modes_part.c) with other compiler options. These options decide which stack mode is right.
 * Usage: unwind_modes SECONDS of CPU time */
#include "unwind_modes.h"

#include <stdlib.h>

#include "unwind_burn.h"

static uint64_t seed = 88172645463325252U;

__attribute__((noinline, noclone)) void modes_leaf(void) {
    OWN_FRAME();
    seed = burn(300000, seed);
}

/* Enough functions to make the start files a small part of the program. */
#define STEP(n, next)                                        \
    __attribute__((noinline, noclone)) void step_##n(void) { \
        volatile char room[16 + n];                          \
        room[0] = 1;                                         \
        next();                                              \
        (void)room[1];                                       \
    }
STEP(1, modes_leaf)
STEP(2, step_1)
STEP(3, step_2)
STEP(4, step_3)
STEP(5, step_4)
STEP(6, step_5)
STEP(7, step_6)
STEP(8, step_7)
STEP(9, modes_part)
STEP(10, step_9)

int main(int argc, char** argv) {
    const uint64_t end = cpu_ns() + (uint64_t)(atof(argc > 1 ? argv[1] : "2") * 1e9);
    do {
        for (int i = 0; i < 20; ++i) {
            step_8();
            step_10();
        }
    } while (cpu_ns() < end);
    return seed == 0;
}
