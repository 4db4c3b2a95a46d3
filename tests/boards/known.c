/* A program with a known number of instructions: a loop of two instructions. Prints their number and the CPU time.
   Usage: known MILLIONS_OF_TURNS */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static unsigned long long cpu_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (unsigned long long)now.tv_sec * 1000000000ULL + (unsigned long long)now.tv_nsec;
}

__attribute__((noinline)) static void turn(unsigned long turns) {
#if defined(__aarch64__) || defined(__arm__)
    __asm__ volatile("1: subs %0, %0, #1\n bne 1b" : "+r"(turns) : : "cc");
#else
    while (turns != 0) {
        --turns;
        __asm__ volatile("" : "+r"(turns));
    }
#endif
}

int main(int argc, char** argv) {
    const unsigned long millions = argc > 1 ? strtoul(argv[1], NULL, 10) : 100;
    const unsigned long long before = cpu_ns();
    for (unsigned long i = 0; i < millions; ++i) turn(1000000);
    printf("known: %llu instructions, %llu ns of CPU\n", 2000000ULL * millions, cpu_ns() - before);
    return 0;
}
