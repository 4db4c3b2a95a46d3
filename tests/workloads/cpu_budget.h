// Burns a stated amount of this thread's CPU time in the caller's name: what makes the shares of a workload known.
// Always inlined, so that the samples land in the function that burns (a clock read every ~20 us costs below 2 %).
#pragma once

#include <cstdint>
#include <ctime>

namespace workload {

[[gnu::always_inline]] inline std::uint64_t thread_cpu_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000ULL + static_cast<std::uint64_t>(now.tv_nsec);
}

// One turn of arithmetic that a compiler can neither remove nor vectorize away.
[[gnu::always_inline]] inline std::uint64_t mix(std::uint64_t x) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    asm volatile("" : "+r"(x));
    return x;
}

[[gnu::always_inline]] inline std::uint64_t burn_cpu(std::uint64_t budget_ns, std::uint64_t seed) {
    const std::uint64_t end = thread_cpu_ns() + budget_ns;
    do {
        for (int i = 0; i < 10'000; ++i) seed = mix(seed);
    } while (thread_cpu_ns() < end);
    return seed;
}

}  // namespace workload
