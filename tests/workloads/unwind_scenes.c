/* Call paths that unwinders get wrong, one after the other, for SECONDS of CPU time. Exactly one call path leads from
 * main to each function that burns; tests/harness/stacks.py contains them.
 * Usage: unwind_scenes SECONDS [FILE]. FILE is created after the first round. */
#define _GNU_SOURCE
#include <alloca.h>
#include <ctype.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "unwind_burn.h"

#define NOINLINE __attribute__((noinline, noclone))
#define TURNS 600000U

static uint64_t seed = 88172645463325252U;

/* Plain frames; the middle one is large. */
NOINLINE static void plain_leaf(void) {
    OWN_FRAME();
    seed = burn(TURNS + 2, seed);
}
NOINLINE static void plain_middle(void) {
    volatile char room[3000];
    room[seed % sizeof room] = 1;
    plain_leaf();
    KEEP_FRAME();
}
NOINLINE static void plain_outer(void) {
    plain_middle();
    KEEP_FRAME();
}

/* Frames whose size is only known at run time. */
NOINLINE static void vla_leaf(volatile char* room, unsigned size) {
    OWN_FRAME();
    seed = burn(TURNS, seed);
    room[size / 2] = (char)seed;
}
NOINLINE static void vla_middle(unsigned size) {
    volatile char room[size];
    room[0] = 1;
    vla_leaf(room, size);
    KEEP_FRAME();
}
NOINLINE static void alloca_outer(unsigned size) {
    volatile char* room = alloca(size);
    room[0] = 1;
    vla_middle(size / 2 + 1);
    room[size - 1] = 2;
}

/* A signal handler that interrupts a function at any instruction, on the thread's stack and on an alternate one. */
NOINLINE static void same_stack_burn(void) {
    OWN_FRAME();
    seed = burn(TURNS * 3, seed);
}
NOINLINE static void own_stack_burn(void) {
    OWN_FRAME();
    seed = burn(TURNS * 3 + 1, seed);
}
static volatile sig_atomic_t handled;
static void on_same_stack(int number) {
    handled = number;
    same_stack_burn();
    KEEP_FRAME();
}
static void on_own_stack(int number) {
    handled = number;
    own_stack_burn();
    KEEP_FRAME();
}
/* A timer of CPU time: on a busy machine, a real-time timer would expire before the interrupted code ran. It expires
 * once, at a tick of the kernel. */
static void start_timer(void (*handler)(int), int flags) {
    static char own[65536];
    const stack_t stack = {.ss_sp = own, .ss_size = sizeof own};
    sigaltstack(&stack, NULL);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = flags | SA_RESTART;
    sigaction(SIGPROF, &action, NULL);
    handled = 0;
    const struct itimerval once = {{0, 0}, {0, 500}};
    setitimer(ITIMER_PROF, &once, NULL);
}
NOINLINE static void same_stack_interrupted(void) {
    OWN_FRAME();
    while (!handled) seed = burn(TURNS / 16, seed);
    seed = burn(TURNS, seed);
}
NOINLINE static void same_stack_outer(void) {
    start_timer(on_same_stack, 0);
    same_stack_interrupted();
    KEEP_FRAME();
}
NOINLINE static void own_stack_interrupted(void) {
    OWN_FRAME();
    while (!handled) seed = burn(TURNS / 16, seed);
    seed = burn(TURNS + 1, seed);
}
NOINLINE static void own_stack_outer(void) {
    start_timer(on_own_stack, SA_ONSTACK);
    own_stack_interrupted();
    KEEP_FRAME();
}

/* A call that does not return is the last instruction of its function: its return address is in the next function. */
static jmp_buf out_of_noreturn;
__attribute__((section(".text.noreturn"))) NOINLINE __attribute__((noreturn)) static void noreturn_leaf(void) {
    OWN_FRAME();
    seed = burn(TURNS, seed);
    longjmp(out_of_noreturn, 1);
}
__attribute__((section(".text.noreturn"))) NOINLINE __attribute__((noreturn)) static void noreturn_middle(void) {
    volatile char room[200];
    room[seed % sizeof room] = 1;
    noreturn_leaf();
}
__attribute__((section(".text.noreturn"))) NOINLINE static void noreturn_neighbour(void) {
    OWN_FRAME();
    seed = burn(1, seed);
}
NOINLINE static void noreturn_outer(void) {
    if (setjmp(out_of_noreturn) == 0) noreturn_middle();
    noreturn_neighbour();
    KEEP_FRAME();
}

/* Through libc and back, and through a PLT entry in which samples hit. */
NOINLINE static int libc_compare(const void* a, const void* b) {
    OWN_FRAME();
    seed = burn(TURNS / 64, seed);
    return *(const int*)a - *(const int*)b;
}
NOINLINE static void libc_outer(void) {
    int numbers[16];
    for (int i = 0; i < 16; ++i) numbers[i] = (int)((seed >> i) % 1000);
    qsort(numbers, 16, sizeof numbers[0], libc_compare);
    seed += (uint64_t)numbers[0];
}
NOINLINE static void plt_loop(void) {
    int (*volatile unknown)(int) = NULL;
    int sum = 0;
    for (unsigned i = 0; i < TURNS * 3; ++i) sum += toupper((int)(i & 127U));
    if (unknown != NULL) unknown(sum);
    seed += (uint64_t)(unsigned)sum;
}
NOINLINE static void plt_outer(void) {
    plt_loop();
    KEEP_FRAME();
}
NOINLINE static void vdso_loop(void) {
    for (unsigned i = 0; i < TURNS / 20; ++i) seed += clock_ns(CLOCK_MONOTONIC) & 1U;
}
NOINLINE static void vdso_outer(void) {
    vdso_loop();
    KEEP_FRAME();
}

#ifdef UNWIND_ASSEMBLY
/* In unwind_frames.S: each calls its argument from a frame that no compiler creates. */
void asm_cfa_in_register(void (*leaf)(void));
void asm_cfa_expression(void (*leaf)(void));
void asm_saved_elsewhere(void (*leaf)(void));
void asm_pushes(void (*leaf)(void));
NOINLINE static void asm_leaf_register(void) {
    OWN_FRAME();
    seed = burn(TURNS / 2, seed);
}
NOINLINE static void asm_leaf_expression(void) {
    OWN_FRAME();
    seed = burn(TURNS / 2, seed);
}
NOINLINE static void asm_leaf_elsewhere(void) {
    OWN_FRAME();
    seed = burn(TURNS / 2, seed);
}
NOINLINE static void asm_leaf_pushes(void) {
    OWN_FRAME();
    seed = burn(TURNS / 2, seed);
}
NOINLINE static void asm_outer(void) {
    asm_cfa_in_register(asm_leaf_register);
    asm_cfa_expression(asm_leaf_expression);
    asm_saved_elsewhere(asm_leaf_elsewhere);
    asm_pushes(asm_leaf_pushes);
    KEEP_FRAME();
}
#endif

int main(int argc, char** argv) {
    const uint64_t end = cpu_ns() + (uint64_t)(atof(argc > 1 ? argv[1] : "2") * 1e9);
    unsigned round = 0;
    do {
        plain_outer();
        alloca_outer(16 + round * 37 % 3000);
        same_stack_outer();
        own_stack_outer();
        noreturn_outer();
        libc_outer();
        plt_outer();
        vdso_outer();
#ifdef UNWIND_ASSEMBLY
        asm_outer();
#endif
        if (++round == 1 && argc > 2) close(open(argv[2], O_CREAT | O_WRONLY, 0600));
    } while (cpu_ns() < end);
    return seed == 0;
}
