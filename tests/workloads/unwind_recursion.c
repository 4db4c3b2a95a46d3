/* Stacks that are deeper than a profiler's stack copies. Usage: unwind_recursion MODE SECONDS of CPU time
 *   small   2,000 frames of 16 bytes; all time is spent at the bottom
 *   slow    2,000 frames of 64 bytes; each level takes time on the way down and up
 *   wide    200 frames of a KiB, from two callers in turn; each level takes 0.3 ms, in work_a or work_b
 *   leap    as wide, but caller a returns and caller b descends at once: no samples between two similar stacks
 *   turns   as wide, but all time is spent at the bottom, 25 ms per caller
 *   shifts  as turns, 700 ms per caller
 *   stay    as turns, but the turn of caller a does not end
 * The root of work_a is caller_a, that of work_b is caller_b, at the same stack pointers. */
#include <stdlib.h>
#include <string.h>

#include "unwind_burn.h"

#define NOINLINE __attribute__((noinline, noclone))

static uint64_t seed = 88172645463325252U;

NOINLINE static void small_bottom(void) { seed = burn(3000000, seed); }
NOINLINE static void small_dive(unsigned depth) {
    if (depth == 0)
        small_bottom();
    else
        small_dive(depth - 1);
    KEEP_FRAME();
}

NOINLINE static void slow_work(void) { seed = burn(20000, seed); }
NOINLINE static void slow_dive(unsigned depth) {
    volatile char room[40];
    room[depth % sizeof room] = 1;
    slow_work();
    if (depth != 0) slow_dive(depth - 1);
    slow_work();
    room[0] = 2;
}

static unsigned work_turns; /* of burn(), in work_ns */
NOINLINE static void work_a(void) { seed = burn(work_turns, seed) + 1; }
NOINLINE static void work_b(void) { seed = burn(work_turns, seed) + 2; }
/* The number of levels between two samples decides which stacks can be joined, so it must be equal on every CPU. */
static const uint64_t work_ns = 300000;
static void measure_work(void) {
    const unsigned trial = 1000000;
    uint64_t fastest = UINT64_MAX;
    for (int i = 0; i < 5; ++i) {
        const uint64_t start = cpu_ns();
        seed = burn(trial, seed);
        const uint64_t taken = cpu_ns() - start;
        if (taken < fastest) fastest = taken;
    }
    work_turns = (unsigned)(work_ns * trial / (fastest + 1)) + 1;
}
/* A global, so that only the outermost frames show whether this is work_a or work_b. */
static void (*work)(void);
static unsigned quiet_down, quiet_up; /* levels that take no time */
static int at_bottom = 40;
static uint64_t bottom_end; /* in CPU time; the bottom is not left before */
NOINLINE static void wide_dive(unsigned depth) {
    volatile char room[1000];
    room[depth % sizeof room] = 1;
    if (depth >= quiet_down) work();
    if (depth != 199)
        wide_dive(depth + 1);
    else
        for (int i = 0; i < at_bottom || cpu_ns() < bottom_end; ++i) work();
    if (depth >= quiet_up) work();
    room[0] = 2;
}
NOINLINE static void caller_a(int leap, int turns) {
    work = work_a;
    quiet_down = turns ? 200 : 0;
    quiet_up = leap || turns ? 200 : 0;
    wide_dive(0);
    KEEP_FRAME();
}
NOINLINE static void caller_b(int leap, int turns) {
    work = work_b;
    quiet_down = leap || turns ? 200 : 0;
    quiet_up = turns ? 200 : 0;
    wide_dive(0);
    KEEP_FRAME();
}

int main(int argc, char** argv) {
    measure_work();
    const char* mode = argc > 1 ? argv[1] : "wide";
    const uint64_t end = cpu_ns() + (uint64_t)(atof(argc > 2 ? argv[2] : "2") * 1e9);
    do {
        if (strcmp(mode, "small") == 0) {
            small_dive(2000);
        } else if (strcmp(mode, "slow") == 0) {
            slow_dive(2000);
        } else {
            const int leap = strcmp(mode, "leap") == 0;
            const int turns = strcmp(mode, "turns") == 0, shifts = strcmp(mode, "shifts") == 0;
            const int stay = strcmp(mode, "stay") == 0;
            if (turns) at_bottom = 83;
            if (shifts) at_bottom = 2333;
            if (stay) bottom_end = end;
            caller_a(leap, turns || shifts || stay);
            if (!stay) caller_b(leap, turns || shifts);
        }
    } while (cpu_ns() < end);
    return seed == 0;
}
