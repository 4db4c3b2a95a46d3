// Calls through trampolines in anonymous memory, as CPython uses for -X perf: `unwind-trampolines-workload SECONDS`.
// The instructions are those of Python/asm_trampoline*.S, on x86-64 of several versions in turn. A perf map names the
// copies. The program has no frame pointers. Each call path is
// main > call > py::outer > evaluate > call > py::middle > evaluate > call > py::inner > evaluate > burn.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { functions = 3, code_distance = 32, arena_bytes = 4096 };

typedef struct {
    int depth;
} Frame;
typedef uint64_t (*Evaluator)(char** code, Frame* frame, int throwing);
typedef uint64_t (*Trampoline)(char** code, Frame* frame, int throwing, Evaluator evaluator);

static const char* const names[functions] = {"py::outer:program.py", "py::middle:program.py", "py::inner:program.py"};

#if defined(__x86_64__)
static const unsigned char with_sub[] = {0x48, 0x83, 0xec, 8, 0xff, 0xd1, 0x48, 0x83, 0xc4, 8, 0xc3};
static const unsigned char with_push[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd1, 0x5d, 0xc3};
static const unsigned char with_endbr[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x83, 0xec, 8,
                                           0xff, 0xd1, 0x48, 0x83, 0xc4, 8,    0xc3};
static const struct {
    const unsigned char* bytes;
    size_t size;
} trampolines[functions] = {
    {with_sub, sizeof(with_sub)}, {with_push, sizeof(with_push)}, {with_endbr, sizeof(with_endbr)}};
#elif defined(__aarch64__)
static const uint32_t trampoline[] = {0xa9bf7bfd, 0x910003fd, 0xd63f0060, 0xa8c17bfd, 0xd65f03c0};
static const struct {
    const void* bytes;
    size_t size;
} trampolines[functions] = {
    {trampoline, sizeof(trampoline)}, {trampoline, sizeof(trampoline)}, {trampoline, sizeof(trampoline)}};
#else
#error "CPython has no trampolines here"
#endif

__attribute__((noinline, noclone)) static uint64_t burn(uint64_t rounds) {
    volatile uint64_t sum = 0;
    for (uint64_t i = 0; i < rounds; ++i) sum += i;
    return sum;
}

static uint64_t evaluate(char** code, Frame* frame, int throwing);

__attribute__((noinline, noclone)) static uint64_t call(char** code, Frame* frame, int throwing) {
    Trampoline trampoline_of_function;
    memcpy(&trampoline_of_function, &code[frame->depth], sizeof(trampoline_of_function));
    return trampoline_of_function(code, frame, throwing, evaluate) + 1;
}

__attribute__((noinline, noclone)) static uint64_t evaluate(char** code, Frame* frame, int throwing) {
    Frame callee = {frame->depth + 1};
    const uint64_t result = callee.depth < functions ? call(code, &callee, throwing) : burn(20000);
    return result + (uint64_t)frame->depth;
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int main(int argc, char** argv) {
    const double seconds = argc > 1 ? strtod(argv[1], NULL) : 1;
    char* arena = mmap(NULL, arena_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (arena == MAP_FAILED) return 1;
    char name[64];
    snprintf(name, sizeof(name), "/tmp/perf-%d.map", (int)getpid());
    FILE* map = fopen(name, "w");
    if (map == NULL) {
        perror(name);
        return 1;
    }
    char* code[functions];
    for (int i = 0; i < functions; ++i) {
        code[i] = arena + i * code_distance;
        memcpy(code[i], trampolines[i].bytes, trampolines[i].size);
        fprintf(map, "%llx %zx %s\n", (unsigned long long)(uintptr_t)code[i], trampolines[i].size, names[i]);
    }
    fclose(map);
    __builtin___clear_cache(arena, arena + arena_bytes);
    // CPython also makes the memory read-only before it calls.
    if (mprotect(arena, arena_bytes, PROT_READ | PROT_EXEC) != 0) return 1;
    uint64_t sum = 0;
    Frame outermost = {0};
    for (const uint64_t end = now_ns() + (uint64_t)(seconds * 1e9); now_ns() < end;) sum += call(code, &outermost, 0);
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
