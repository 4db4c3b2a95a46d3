/* A 32-bit program without libraries, so no 32-bit libc is needed to build or run it. It runs for three seconds of CPU
 * time. Built with -m32 -ffreestanding -nostdlib -static. */
typedef unsigned int u32;
#define NOINLINE __attribute__((noinline, noclone))

static u32 system_call(u32 number, u32 a, u32 b) {
    u32 result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b) : "memory");
    return result;
}

static u32 cpu_seconds(void) {
    u32 time[2];
    system_call(265, 2, (u32)time); /* clock_gettime of CLOCK_PROCESS_CPUTIME_ID */
    return time[0];
}

static u32 seed = 362436069;

NOINLINE static void small_leaf_32(void) {
    for (int i = 0; i < 600000; ++i) {
        seed ^= seed << 13;
        seed ^= seed >> 17;
        seed ^= seed << 5;
        __asm__ volatile("" : "+m"(seed));
    }
}
NOINLINE static void small_middle_32(u32 depth) {
    volatile char room[300];
    room[depth] = 1;
    if (depth == 0)
        small_leaf_32();
    else
        small_middle_32(depth - 1);
    (void)room[0];
}

/* The outermost frame. Its CFI declares the return address as undefined, as start files do. */
__asm__(
    "        .globl  _start\n"
    "        .type   _start, @function\n"
    "_start:\n"
    "        .cfi_startproc\n"
    "        .cfi_undefined eip\n"
    "        xor     %ebp, %ebp\n"
    "        and     $-16, %esp\n"
    "        call    main_32\n"
    "        hlt\n"
    "        .cfi_endproc\n"
    "        .size   _start, .-_start\n");

__attribute__((used)) static void main_32(void) {
    while (cpu_seconds() < 3) {
        small_middle_32(5);
        __asm__ volatile("" ::: "memory");
    }
    system_call(1, 0, 0);
    for (;;) continue;
}
