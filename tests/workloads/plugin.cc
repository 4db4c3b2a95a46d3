// A library that the dlopen test loads and unloads repeatedly.
#include "cpu_budget.h"

extern "C" [[gnu::noinline]] void plugin_work() {
    static std::uint64_t state = 1;
    // The library is reloaded for each call, so only the clock can make the lengths of calls differ.
    workload::Lengths lengths(workload::thread_cpu_ns());
    state = workload::burn_cpu(lengths.next(2'000'000), state);
}
