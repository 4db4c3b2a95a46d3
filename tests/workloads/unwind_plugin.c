/* A library that is loaded and unloaded. Two variants have the same functions at the same addresses but other frames:
 * UNWIND_PLUGIN is the letter of a variant, UNWIND_ROOM the size of its frames. */
#include "unwind_burn.h"

#define NOINLINE __attribute__((noinline, noclone))
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define NAME(name) JOIN(name, UNWIND_PLUGIN)

NOINLINE static uint64_t NAME(plugin_leaf_)(uint64_t seed) { return burn(2000000, seed); }
NOINLINE static uint64_t NAME(plugin_middle_)(uint64_t seed) {
    volatile char room[UNWIND_ROOM];
    room[seed % sizeof room] = 1;
    seed = NAME(plugin_leaf_)(seed);
    KEEP_FRAME();
    return seed + (uint64_t)room[0];
}
__attribute__((visibility("default"))) uint64_t plugin_entry(uint64_t seed) {
    seed = NAME(plugin_middle_)(seed);
    KEEP_FRAME();
    return seed + 1;
}

/* Enough functions to put the unwind tables of plugin_late_entry into another page of the file. */
#define FILLER(n)                                                 \
    __attribute__((visibility("default"))) void filler_##n(void); \
    void filler_##n(void) {                                       \
        volatile char room[100];                                  \
        room[0] = 1;                                              \
        plugin_entry(1);                                          \
        (void)room[1];                                            \
    }
#define FILLERS_4(n) FILLER(n##0) FILLER(n##1) FILLER(n##2) FILLER(n##3)
#define FILLERS_16(n) FILLERS_4(n##0) FILLERS_4(n##1) FILLERS_4(n##2) FILLERS_4(n##3)
#define FILLERS_64(n) FILLERS_16(n##0) FILLERS_16(n##1) FILLERS_16(n##2) FILLERS_16(n##3)
FILLERS_64(0)
FILLERS_64(1) FILLERS_64(2) FILLERS_64(3)

    NOINLINE static uint64_t NAME(plugin_late_leaf_)(uint64_t seed) {
    return burn(2000001, seed);
}
NOINLINE static uint64_t NAME(plugin_late_middle_)(uint64_t seed) {
    volatile char room[UNWIND_ROOM];
    room[seed % sizeof room] = 1;
    seed = NAME(plugin_late_leaf_)(seed);
    KEEP_FRAME();
    return seed + (uint64_t)room[0];
}
__attribute__((visibility("default"))) uint64_t plugin_late_entry(uint64_t seed) {
    seed = NAME(plugin_late_middle_)(seed);
    KEEP_FRAME();
    return seed + 1;
}
