/* Burns CPU time in the unwind workloads. Always inlined, so that samples hit the calling function. */
#pragma once

#include <stdint.h>
#include <time.h>

__attribute__((always_inline)) static inline uint64_t clock_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}
/* Workloads end by CPU time, so that they get as many samples on a busy machine. */
__attribute__((always_inline)) static inline uint64_t cpu_ns(void) { return clock_ns(CLOCK_PROCESS_CPUTIME_ID); }

/* A million turns take one or two milliseconds. */
__attribute__((always_inline)) static inline uint64_t burn(unsigned turns, uint64_t x) {
    for (unsigned i = 0; i < turns; ++i) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        __asm__ volatile("" : "+r"(x));
    }
    return x;
}

/* Put this after a call, so that the call is not compiled as a tail call, which replaces the caller's frame. */
#define KEEP_FRAME() __asm__ volatile("" ::: "memory")

/* A function that stores nothing on the stack gets no frame pointer, whatever the compiler options. */
#define OWN_FRAME()        \
    volatile char kept[8]; \
    kept[0] = 1;           \
    (void)kept[0]
