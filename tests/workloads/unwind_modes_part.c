/* The part of unwind_modes that unwind-modes-mixed compiles without frame pointers, although the rest has them. */
#include "unwind_burn.h"
#include "unwind_modes.h"

static uint64_t seed = 362436069U;

__attribute__((noinline, noclone)) static void part_leaf(void) {
    OWN_FRAME();
    seed = burn(300000, seed);
}

__attribute__((noinline, noclone)) void modes_part(void) {
    part_leaf();
    modes_leaf();
    KEEP_FRAME();
}
