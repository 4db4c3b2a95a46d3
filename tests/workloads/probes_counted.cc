// A USDT probe with a semaphore, which a tracer counts up while it is attached.
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>

#if __SIZEOF_POINTER__ == 8
// Damaged notes: of a probe in data, and of one inside an instruction. Nobody may write a breakpoint there.
#define MISPLACED_PROBE(name, place)                                                                        \
    __asm__(                                                                                                \
        ".pushsection .note.stapsdt,\"\",\"note\"\n.balign 4\n.4byte 8, 992f-991f, 3\n.asciz \"stapsdt\"\n" \
        "991:\n.8byte " place "\n.8byte _.stapsdt.base\n.8byte 0\n.asciz \"probed\"\n.asciz \"" name        \
        "\"\n.asciz \"\"\n992:\n.balign 4\n.popsection\n")
MISPLACED_PROBE("in_data", "probed_counted_semaphore");
MISPLACED_PROBE("in_instruction", "probed_static_counted + 1");
#endif

extern "C" {
[[gnu::section(".probes")]] volatile unsigned short probed_counted_semaphore = 0;

[[gnu::noinline]] void probed_static_counted(int number) { STAP_PROBE1(probed, counted, number); }
}
