// A USDT probe with a semaphore, which a tracer counts up while it is attached.
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>

extern "C" {
[[gnu::section(".probes")]] volatile unsigned short probed_counted_semaphore = 0;

[[gnu::noinline]] void probed_static_counted(int number) { STAP_PROBE1(probed, counted, number); }
}
