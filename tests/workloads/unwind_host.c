/* Calls libraries. Usage: unwind_host SECONDS of CPU time LIBRARY... Loads, calls and unloads each library in turn. A
 * single library stays loaded, and is called at another entry once the file LIBRARY.late exists. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "unwind_burn.h"

typedef uint64_t (*Entry)(uint64_t);

__attribute__((noinline, noclone)) static uint64_t host_call(Entry entry, uint64_t seed) {
    seed = entry(seed);
    KEEP_FRAME();
    return seed + 1;
}

__attribute__((noinline, noclone)) static uint64_t host_loop(char** paths, int count, uint64_t end, uint64_t seed) {
    void* library = NULL;
    for (int i = 0; cpu_ns() < end; i = (i + 1) % count) {
        if (library == NULL || count > 1) library = dlopen(paths[i], RTLD_NOW | RTLD_LOCAL);
        char late[4096];
        snprintf(late, sizeof late, "%s.late", paths[i]);
        const char* name = access(late, F_OK) == 0 ? "plugin_late_entry" : "plugin_entry";
        const Entry entry = library == NULL ? NULL : (Entry)dlsym(library, name);
        if (entry == NULL) {
            fprintf(stderr, "%s\n", dlerror());
            exit(1);
        }
        for (int call = 0; call < 5; ++call) seed = host_call(entry, seed);
        if (count > 1) dlclose(library);
    }
    return seed;
}

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    const uint64_t end = cpu_ns() + (uint64_t)(atof(argv[1]) * 1e9);
    return host_loop(argv + 2, argc - 2, end, 88172645463325252U) == 0;
}
