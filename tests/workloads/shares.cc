// A program with known CPU shares: burn_10, burn_20, burn_30 and burn_40 take 10, 20, 30 and 40 % of each thread's CPU
// time, in rounds of various lengths. Usage: shares-workload SECONDS [THREADS]. Prints a checksum and the CPU time, ns.
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "cpu_budget.h"

namespace {

constexpr std::uint64_t usual_unit_ns = 1'370'000;

// Each function burns until a given time on the thread's CPU clock. If one takes too long, the next one gets less, so
// the shares do not drift.
[[gnu::noinline]] std::uint64_t burn_10(std::uint64_t end_ns, std::uint64_t seed) {
    return workload::burn_until(end_ns, seed) + 1;
}
[[gnu::noinline]] std::uint64_t burn_20(std::uint64_t end_ns, std::uint64_t seed) {
    return workload::burn_until(end_ns, seed) + 2;
}
[[gnu::noinline]] std::uint64_t burn_30(std::uint64_t end_ns, std::uint64_t seed) {
    return workload::burn_until(end_ns, seed) + 3;
}
[[gnu::noinline]] std::uint64_t burn_40(std::uint64_t end_ns, std::uint64_t seed) {
    return workload::burn_until(end_ns, seed) + 4;
}

[[gnu::noinline]] std::uint64_t round_of_work(std::uint64_t begin_ns, std::uint64_t unit_ns, std::uint64_t seed) {
    seed = burn_10(begin_ns + unit_ns, seed);
    seed = burn_20(begin_ns + 3 * unit_ns, seed);
    seed = burn_30(begin_ns + 6 * unit_ns, seed);
    return burn_40(begin_ns + 10 * unit_ns, seed) + 5;
}

std::uint64_t run(double seconds, std::uint64_t seed) {
    workload::Lengths units(seed);
    std::uint64_t at_ns = workload::thread_cpu_ns();
    timespec begin{};
    ::clock_gettime(CLOCK_MONOTONIC, &begin);
    for (;;) {
        const std::uint64_t unit_ns = units.next(usual_unit_ns);
        seed = round_of_work(at_ns, unit_ns, seed);
        at_ns += 10 * unit_ns;
        timespec now{};
        ::clock_gettime(CLOCK_MONOTONIC, &now);
        const double elapsed =
            static_cast<double>(now.tv_sec - begin.tv_sec) + static_cast<double>(now.tv_nsec - begin.tv_nsec) * 1e-9;
        if (elapsed >= seconds) return seed;
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
    timespec cpu{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    std::printf("%llu %lld\n", static_cast<unsigned long long>(sum),
                static_cast<long long>(cpu.tv_sec) * 1'000'000'000LL + cpu.tv_nsec);
    return 0;
}
