// Uses a given amount of this thread's CPU time, so that the shares of a workload's functions are known. Always
// inlined, so that samples hit the calling function. The clock is read every ~20 us, which costs less than 2 %.
#pragma once

#include <cstdint>
#include <ctime>

namespace workload {

[[gnu::always_inline]] inline std::uint64_t thread_cpu_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000ULL + static_cast<std::uint64_t>(now.tv_nsec);
}

// One step of arithmetic that a compiler can neither remove nor vectorize.
[[gnu::always_inline]] inline std::uint64_t mix(std::uint64_t x) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    asm volatile("" : "+r"(x));
    return x;
}

// Burns until this thread has used `end_ns` of CPU time in total.
[[gnu::always_inline]] inline std::uint64_t burn_until(std::uint64_t end_ns, std::uint64_t seed) {
    do {
        for (int i = 0; i < 10'000; ++i) seed = mix(seed);
    } while (thread_cpu_ns() < end_ns);
    return seed;
}

[[gnu::always_inline]] inline std::uint64_t burn_cpu(std::uint64_t budget_ns, std::uint64_t seed) {
    return burn_until(thread_cpu_ns() + budget_ns, seed);
}

// Pseudo-random lengths between 0.5 and 1.5 times `usual_ns`, the same in each run. Rounds of equal length could be in
// step with a sampler.
class Lengths {
public:
    explicit Lengths(std::uint64_t seed) : state_(seed) {}
    std::uint64_t next(std::uint64_t usual_ns) {
        state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
        return usual_ns / 2 + (state_ >> 33) % usual_ns;
    }

private:
    std::uint64_t state_;
};

}  // namespace workload
