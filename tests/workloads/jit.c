// JIT code: `jit-workload map|dump|silent|quick MS`. Runs first_function for MS milliseconds, then second_function at
// the same addresses for as long, and with `dump` for as long again after a move. A perf map or a jitdump (in the
// current folder) names the functions. Prints the CLOCK_MONOTONIC time of each change.
//
// `quick` loads 16 pairs of functions, each pair at its own addresses, and runs each function for MS milliseconds. A
// profiler cannot read the name of one before the next one replaces it.
//
// `jit-workload calls MS CODE [FRAMES]` loads a function (callee, argument) from the file CODE and names it
// jitted_caller in a jitdump, with the .eh_frame from the file FRAMES. The function calls one of this program for MS
// milliseconds.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { code_bytes = 512, page_bytes = 65536 };

typedef uint64_t (*spin_function)(uint64_t);

// This function is copied to other addresses, so it must not call anything or read memory other than its own stack.
__attribute__((noinline, noclone)) static uint64_t spin(uint64_t rounds) {
    volatile uint64_t sum = 0;
    for (uint64_t i = 0; i < rounds; ++i) sum += i;
    return sum;
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void run(char* code, uint64_t ms) {
    spin_function function;
    memcpy(&function, &code, sizeof(function));
    for (const uint64_t end = now_ns() + ms * 1000000; now_ns() < end;) function(200000);
}

static void make_code(char* at) {
    const char* from;
    spin_function function = spin;
    memcpy(&from, &function, sizeof(from));
    memcpy(at, from, code_bytes);
    __builtin___clear_cache(at, at + code_bytes);
}

static FILE* open_file(const char* name) {
    FILE* file = fopen(name, "w+");
    if (file == NULL) {
        perror(name);
        exit(1);
    }
    return file;
}

static void put(FILE* file, uint64_t value, size_t bytes) { fwrite(&value, 1, bytes, file); }

// The format is in jitdump-specification.txt of the kernel.
static void record(FILE* dump, uint32_t kind, uint32_t fields) {
    put(dump, kind, 4);
    put(dump, 16 + fields, 4);
    put(dump, now_ns(), 8);
}

static void load_code(FILE* dump, const char* code, size_t size, const char* name, uint64_t index) {
    record(dump, 0, 40 + (uint32_t)strlen(name) + 1 + (uint32_t)size);  // JIT_CODE_LOAD
    put(dump, (uint64_t)getpid(), 4);
    put(dump, (uint64_t)getpid(), 4);
    put(dump, (uintptr_t)code, 8);
    put(dump, (uintptr_t)code, 8);
    put(dump, size, 8);
    put(dump, index, 8);
    fwrite(name, 1, strlen(name) + 1, dump);
    fwrite(code, 1, size, dump);
    fflush(dump);
}

static void load(FILE* dump, const char* code, const char* name, uint32_t line) {
    static const char source[] = "/src/jitted.src";
    record(dump, 2, 16 + 2 * (16 + sizeof(source)));  // JIT_CODE_DEBUG_INFO
    put(dump, (uintptr_t)code, 8);
    put(dump, 2, 8);
    for (uint32_t i = 0; i < 2; ++i) {
        put(dump, (uintptr_t)code + i * (code_bytes / 2), 8);
        put(dump, line + i, 4);
        put(dump, 0, 4);
        fwrite(source, 1, sizeof(source), dump);
    }
    load_code(dump, code, code_bytes, name, line);
}

static void moved(FILE* dump, const char* from, const char* to) {
    record(dump, 1, 48);  // JIT_CODE_MOVE
    put(dump, (uint64_t)getpid(), 4);
    put(dump, (uint64_t)getpid(), 4);
    put(dump, (uintptr_t)to, 8);
    put(dump, (uintptr_t)from, 8);
    put(dump, (uintptr_t)to, 8);
    put(dump, code_bytes, 8);
    put(dump, 2, 8);
    fflush(dump);
}

static size_t read_all(const char* name, char* out) {
    FILE* file = fopen(name, "r");
    const size_t size = file == NULL ? 0 : fread(out, 1, page_bytes, file);
    if (size == 0 || fclose(file) != 0) {
        perror(name);
        exit(1);
    }
    return size;
}

static FILE* open_dump(void) {
    char name[64];
    snprintf(name, sizeof(name), "jit-%d.dump", (int)getpid());
    FILE* dump = open_file(name);
    put(dump, 0x4A695444, 4);
    put(dump, 1, 4);
    put(dump, 40, 4);
    put(dump, 62, 4);
    put(dump, 0, 4);
    put(dump, (uint64_t)getpid(), 4);
    put(dump, now_ns(), 8);
    put(dump, 0, 8);
    fflush(dump);
    // Profilers find the jitdump by this mapping.
    if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump), 0) == MAP_FAILED) exit(1);
    return dump;
}

static void quick(char* code, uint64_t ms) {
    FILE* dump = open_dump();
    for (int i = 0; i < 32; ++i) {
        char* at = code + i / 2 * 2 * code_bytes;
        char name[32];
        snprintf(name, sizeof(name), "function_%d", i);
        make_code(at);
        printf("%s %llu\n", name, (unsigned long long)now_ns());
        load(dump, at, name, 10);
        run(at, ms);
    }
}

__attribute__((noinline)) static void called(uint64_t ms) {
    for (const uint64_t end = now_ns() + ms * 1000000; now_ns() < end;) spin(200000);
}

static void calls(char* code, uint64_t ms, const char* code_file, const char* frames_file) {
    FILE* dump = open_dump();
    static char frames[page_bytes];
    static const char name[] = "jitted_caller";
    const size_t code_size = read_all(code_file, code);
    __builtin___clear_cache(code, code + code_size);
    if (frames_file != NULL) {
        const size_t frames_size = read_all(frames_file, frames);
        record(dump, 4, 24 + (uint32_t)frames_size);  // JIT_CODE_UNWINDING_INFO
        put(dump, frames_size, 8);
        put(dump, 0, 8);  // no .eh_frame_hdr
        put(dump, frames_size, 8);
        fwrite(frames, 1, frames_size, dump);
    }
    load_code(dump, code, code_size, name, 1);
    void (*function)(void (*)(uint64_t), uint64_t);
    memcpy(&function, &code, sizeof(function));
    function(called, ms);
}

int main(int argc, char** argv) {
    const char* how = argc > 1 ? argv[1] : "map";
    const uint64_t ms = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000;
    char* code = mmap(NULL, page_bytes, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED) return 1;
    if (strcmp(how, "calls") == 0 && argc > 3) {
        calls(code, ms, argv[3], argc > 4 ? argv[4] : NULL);
        return 0;
    }
    if (strcmp(how, "quick") == 0) {
        quick(code, ms);
        return 0;
    }
    char* other = code + page_bytes / 2;
    FILE* map = NULL;
    FILE* dump = NULL;
    if (strcmp(how, "map") == 0) {
        char name[64];
        snprintf(name, sizeof(name), "/tmp/perf-%d.map", (int)getpid());
        map = open_file(name);
    } else if (strcmp(how, "dump") == 0) {
        dump = open_dump();
    }
    const char* names[] = {"first_function", "second_function"};
    for (int i = 0; i < 2; ++i) {
        make_code(code);
        printf("%s %llu\n", names[i], (unsigned long long)now_ns());
        fflush(stdout);
        if (map != NULL) {
            fprintf(map, "%llx %x %s\n", (unsigned long long)(uintptr_t)code, code_bytes, names[i]);
            fflush(map);
        }
        if (dump != NULL) load(dump, code, names[i], i == 0 ? 10 : 20);
        run(code, ms);
    }
    if (dump != NULL) {
        make_code(other);
        printf("moved %llu\n", (unsigned long long)now_ns());
        moved(dump, code, other);
        memset(code, 0, code_bytes);
        run(other, ms);
    }
    return 0;
}
