/* Time for the functions of the unwind workloads: always inlined, so that samples land in the function that burns. */
#pragma once

#include <stdint.h>
#include <time.h>

__attribute__((always_inline)) static inline uint64_t clock_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}
/* What ends a workload: however busy the machine is, it gets as many samples. */
__attribute__((always_inline)) static inline uint64_t cpu_ns(void) { return clock_ns(CLOCK_PROCESS_CPUTIME_ID); }

/* A million turns take a millisecond or two. */
__attribute__((always_inline)) static inline uint64_t burn(unsigned turns, uint64_t x) {
    for (unsigned i = 0; i < turns; ++i) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        __asm__ volatile("" : "+r"(x));
    }
    return x;
}

/* Behind a call, so that it is none that replaces the caller's frame. */
#define KEEP_FRAME() __asm__ volatile("" ::: "memory")

/* A function that keeps nothing on the stack gets no frame pointer, with any compiler option. */
#define OWN_FRAME()        \
    volatile char kept[8]; \
    kept[0] = 1;           \
    (void)kept[0]
