// A library that the dlopen test loads and unloads again and again.
#include "cpu_budget.h"

extern "C" [[gnu::noinline]] void plugin_work() {
    static std::uint64_t state = 1;
    state = workload::burn_cpu(2'000'000, state);
}
