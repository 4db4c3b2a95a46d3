// A program whose CPU shares are known: burn_10, burn_20, burn_30 and burn_40 take 10, 20, 30 and 40 % of each thread's
// CPU time. Usage: shares-workload SECONDS [THREADS]
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "cpu_budget.h"

namespace {

// A round of 13.7 ms is no multiple of any usual sampling period: a round of 10 ms would beat against 99 or 199 Hz.
constexpr std::uint64_t unit_ns = 1'370'000;

[[gnu::noinline]] std::uint64_t burn_10(std::uint64_t seed) { return workload::burn_cpu(1 * unit_ns, seed) + 1; }
[[gnu::noinline]] std::uint64_t burn_20(std::uint64_t seed) { return workload::burn_cpu(2 * unit_ns, seed) + 2; }
[[gnu::noinline]] std::uint64_t burn_30(std::uint64_t seed) { return workload::burn_cpu(3 * unit_ns, seed) + 3; }
[[gnu::noinline]] std::uint64_t burn_40(std::uint64_t seed) { return workload::burn_cpu(4 * unit_ns, seed) + 4; }

[[gnu::noinline]] std::uint64_t round_of_work(std::uint64_t seed) {
    seed = burn_10(seed);
    seed = burn_20(seed);
    seed = burn_30(seed);
    return burn_40(seed) + 5;
}

std::uint64_t run(double seconds, std::uint64_t seed) {
    const std::uint64_t start = workload::thread_cpu_ns();
    timespec begin{};
    ::clock_gettime(CLOCK_MONOTONIC, &begin);
    for (;;) {
        seed = round_of_work(seed);
        timespec now{};
        ::clock_gettime(CLOCK_MONOTONIC, &now);
        const double elapsed =
            static_cast<double>(now.tv_sec - begin.tv_sec) + static_cast<double>(now.tv_nsec - begin.tv_nsec) * 1e-9;
        if (elapsed >= seconds) return seed + start;
    }
}

}  // namespace

int main(int argc, char** argv) {
    const double seconds = argc > 1 ? std::atof(argv[1]) : 10;
    const int count = argc > 2 ? std::atoi(argv[2]) : 1;
    std::vector<std::thread> threads;
    std::vector<std::uint64_t> results(static_cast<std::size_t>(count));
    for (int i = 1; i < count; ++i)
        threads.emplace_back([seconds, i, &results] {
            results[static_cast<std::size_t>(i)] = run(seconds, static_cast<std::uint64_t>(i) + 88172645463325252ULL);
        });
    results[0] = run(seconds, 88172645463325252ULL);
    for (std::thread& thread : threads) thread.join();
    std::uint64_t sum = 0;
    for (const std::uint64_t result : results) sum ^= result;
    std::printf("%llu\n", static_cast<unsigned long long>(sum));
    return 0;
}
