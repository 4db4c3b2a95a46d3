// A program with many kinds of frames, small enough to run one instruction at a time. PLAIN leaves out what the C library
// would do (for emulated runs, which are slow).
#define _GNU_SOURCE
#include "program.h"

#include <alloca.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif

volatile int sink = 3;

NOINLINE int leaf(int value) { return value * 3 + sink; }

NOINLINE int tail_call(int value) { return leaf(value + 1); }

NOINLINE int with_frame(int value) {
    volatile int numbers[40];
    for (int at = 0; at < 3; ++at) numbers[at * 7] = value + at;
    return leaf(numbers[7]) + numbers[14];
}

NOINLINE int with_alloca(int value) {
    volatile char* bytes = alloca((size_t)(value % 100 + 20));
    bytes[3] = (char)value;
    return leaf(value) + bytes[3];
}

NOINLINE int with_array(int value) {
    volatile char outer[value % 50 + 9];
    outer[1] = (char)value;
    for (int round = 1; round < 3; ++round) {
        volatile char inner[round * 40];
        inner[round] = (char)value;
        outer[2] = (char)(leaf(value) + inner[round]);
    }
    return leaf(value) + outer[1] + outer[2];
}

NOINLINE int many_arguments(int a, int b, int c, int d, int e, int f, int g, int h, int i, int j) {
    return leaf(a + b * c) + d + e * f + g + h * i + j;
}

NOINLINE int pushes_arguments(int value) {
    const int one = many_arguments(value, 2, 3, 4, 5, 6, 7, leaf(8), 9, value);
    return many_arguments(one, value, one, value, one, value, one, value, one, value) + one;
}

NOINLINE int recursion(int depth) { return depth == 0 ? leaf(1) : recursion(depth - 1) + sink; }

NOINLINE int calls_pointer(Function function, int value) { return function(value) + function(value + 1); }

NOINLINE int with_everything_saved(int value) {
    int a = sink, b = sink + 1, c = sink + 2, d = sink + 3, e = sink + 4, f = sink + 5, g = sink + 6, h = sink + 7;
    if (value < 0) return a;  // before anything is saved, where the compiler can
    for (int round = 0; round < 2; ++round) {
        a += leaf(b); b ^= leaf(c); c += leaf(d); d ^= leaf(e);
        e += leaf(f); f ^= leaf(g); g += leaf(h); h ^= leaf(a);
    }
    return a + b + c + d + e + f + g + h;
}

NOINLINE int aligned_frame(int value) {
    volatile char __attribute__((aligned(128))) bytes[256];
    bytes[value % 200] = (char)value;
    return leaf(value) + bytes[value % 200];
}

// The call that never returns is the last instruction, so its return address belongs to the next function.
static jmp_buf back;
__attribute__((noreturn)) NOINLINE static void leave(int value) {
    sink += leaf(value);
    longjmp(back, 1);
}
__attribute__((noreturn)) NOINLINE static void calls_leave(int value) { leave(value + sink); }
NOINLINE int never_returns_inside(int value) {
    if (setjmp(back) == 0) calls_leave(value);
    return leaf(value);
}

#ifndef PLAIN
static int compare(const void* left, const void* right) { return leaf(*(const int*)left) - leaf(*(const int*)right); }

NOINLINE int calls_library(int value) {
    int numbers[6] = {value, 3, 9, -value, 5, 1};
    qsort(numbers, 6, sizeof numbers[0], compare);  // through the PLT, and back
    char text[100];
    int length = snprintf(text, sizeof text, "%d %s %.3f", numbers[2], "text", value / 7.0);
    char* copy = strdup(text);
    memcpy(text + 20, copy, 20);
    length += (int)strlen(copy) + atoi(text);
    free(copy);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);  // in the vDSO
    return length + (now.tv_nsec != 0);
}
#endif

// A handler returns to code of libc, or of the kernel in the vDSO. An emulator has no vDSO, so on aarch64 this program provides it.
static void handle_by(struct sigaction* action) {
#ifdef __aarch64__
    extern void return_from_signal(void);
    const unsigned long has_restorer = 0x04000000;
    struct {
        void (*handler)(int);
        unsigned long flags;
        void (*restorer)(void);
        unsigned long mask;
    } const wanted = {action->sa_handler, (unsigned long)action->sa_flags | has_restorer, return_from_signal, 0};
    syscall(SYS_rt_sigaction, SIGUSR1, &wanted, NULL, sizeof wanted.mask);
#else
    sigaction(SIGUSR1, action, NULL);
#endif
}

static volatile int handled;
NOINLINE static void handle(int signal) {
    volatile int numbers[4] = {signal};
    handled += leaf(numbers[0]);
}
NOINLINE static int interrupted(int value) {
    volatile int kept = value;
    raise(SIGUSR1);
    return leaf(kept);
}
NOINLINE int in_handler_on_other_stack(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handle;
    handle_by(&action);
    int sum = interrupted(1);
    // Far below this stack, but close enough for one copy of both.
    const size_t size = sink < 0 ? 0 : 65536;
    char* place = (char*)(((unsigned long)&action & ~65535ul) - (64ul << 20));
    void* memory = mmap(place, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return -1;
    stack_t other = {.ss_sp = memory, .ss_size = size, .ss_flags = 0};
    sigaltstack(&other, NULL);
    action.sa_flags = SA_ONSTACK;
    handle_by(&action);
    sum += interrupted(2);
    // Also above the interrupted frames: inside a frame of this stack.
    char inside[size / 2];  // of a size unknown to the compiler: gcc's table for ARM is wrong in the epilogue of a large frame
    other.ss_sp = inside;
    other.ss_size = sizeof inside;
    sigaltstack(&other, NULL);
    sum += interrupted(3);
    return sum + handled;
}

int main(void) {
    int sum = leaf(1) + tail_call(2) + with_frame(3) + with_alloca(34) + with_array(27) + pushes_arguments(6);
    sum += recursion(12) + calls_pointer(leaf, 7) + calls_pointer(tail_call, 8);
    sum += with_everything_saved(2) + with_everything_saved(-1) + aligned_frame(11) + never_returns_inside(5);
#ifndef NO_ASSEMBLY
    sum += assembly_pushes(1) + assembly_moves_cfa(2) + assembly_calls(leaf, 3);
#endif
#ifdef EXCEPTIONS
    sum += throws_through_frames(3);
#endif
#ifndef PLAIN
    sum += calls_library(1234);
#endif
#ifndef NO_SIGNALS
    sum += in_handler_on_other_stack();
#endif
    sink = sum;
    return 0;
}
