/* A stack with untouched pages between a function and its caller: they belong to an array that is hardly used. The
 * first second of CPU time is spent in early_leaf, the rest in late_leaf. Usage: unwind_skipped_pages SECONDS */
#include <stdlib.h>

#include "unwind_burn.h"

#define NOINLINE __attribute__((noinline, noclone))

static uint64_t seed = 88172645463325252U;

NOINLINE static void early_leaf(void) { seed = burn(300000, seed); }
NOINLINE static void late_leaf(void) { seed = burn(300000, seed) + 1; }
NOINLINE static void skipped_middle(uint64_t end) {
    const uint64_t early = cpu_ns() + 1000000000U;
    while (cpu_ns() < early) early_leaf();
    while (cpu_ns() < end) late_leaf();
}
NOINLINE static void skipped_outer(uint64_t end) {
    volatile char room[48 * 1024];
    room[0] = 1;
    skipped_middle(end);
    (void)room[0];
}

int main(int argc, char** argv) {
    skipped_outer(cpu_ns() + (uint64_t)(atof(argc > 1 ? argv[1] : "3") * 1e9));
    return seed == 0;
}
