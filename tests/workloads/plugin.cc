// A library that the dlopen test loads and unloads again and again.
#include "cpu_budget.h"

extern "C" [[gnu::noinline]] void plugin_work() {
    static std::uint64_t state = 1;
    // It is loaded anew for each call: what differs from call to call is the clock.
    workload::Lengths lengths(workload::thread_cpu_ns());
    state = workload::burn_cpu(lengths.next(2'000'000), state);
}
