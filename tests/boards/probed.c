/* A program whose functions are called a known number of times, for probes on boards: `probed CALLS`.
   read() is called once for each call, too, with the number as its size. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static volatile unsigned sink;
static char bytes[1 << 16];

/* Kernels do not emulate the entry, but the branch after it. */
#if defined(__aarch64__)
__asm__(
    ".text\n.balign 4\n.globl probed_second\n.type probed_second, %function\n"
    "probed_second:\n .cfi_startproc\n tst w0, #1\n b.ne 1f\n add w0, w0, #1\n1: ret\n .cfi_endproc\n"
    ".size probed_second, . - probed_second\n");
extern unsigned probed_second(unsigned number);
#else
__attribute__((noinline)) unsigned probed_second(unsigned number) {
    __asm__ volatile("" : "+r"(number));
    return number;
}
#endif

__attribute__((noinline)) void probed_leaf(unsigned number) { sink = sink + probed_second(number); }

__attribute__((noinline)) void probed_inner(unsigned number) {
    probed_leaf(number);
    sink = sink + 1;
}

__attribute__((noinline)) void probed_outer(unsigned number) {
    probed_inner(number);
    sink = sink + 1;
}

int main(int argc, char** argv) {
    const unsigned calls = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 100;
    const int zeros = open("/dev/zero", O_RDONLY);
    unsigned total = 0;
    for (unsigned i = 0; i < calls; ++i) {
        probed_outer(i);
        total += (unsigned)read(zeros, bytes, i % sizeof bytes);
    }
    printf("probed: %u calls, %u bytes read\n", calls, total);
    return 0;
}
