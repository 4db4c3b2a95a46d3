// Known hot lines. Each line that ends in a HOT marker uses most of its function's CPU time. The profile must attribute
// the time to exactly these lines, also in inlined functions and templates. The rest of each function is cheap.
// Usage: lines-workload SECONDS
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace {

volatile std::uint64_t sink = 0;

double now_seconds() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Several dependent multiplications, so that samples hit the line: an interrupt arrives an instruction late.
#define step(x, shift) (((x) ^ ((x) >> (shift))) * 0x9E3779B97F4A7C15ULL)

[[gnu::noinline]] std::uint64_t plain_function(std::uint64_t x) {
    x += 17;
    for (int i = 0; i < 50'000; ++i) {
        x = step(x, 17), x = step(x, 29), x = step(x, 11), x = step(x, 23);  // HOT plain
    }
    x ^= 99;
    sink = sink + x;
    return x;
}

[[gnu::always_inline]] inline std::uint64_t inlined_function(std::uint64_t x) {
    x += 3;
    for (int i = 0; i < 50'000; ++i) {
        x = step(x, 13), x = step(x, 31), x = step(x, 19), x = step(x, 7);  // HOT inlined
    }
    return x ^ 5;
}

[[gnu::noinline]] std::uint64_t caller_of_inlined(std::uint64_t x) {
    x ^= 1;
    x = inlined_function(x);
    sink = sink + x;
    return x;
}

template <int Shift>
[[gnu::noinline]] std::uint64_t template_function(std::uint64_t x) {
    x += Shift;
    for (int i = 0; i < 50'000; ++i) {
        x = step(x, Shift), x = step(x, Shift + 1), x = step(x, Shift), x = step(x, Shift + 2);  // HOT template
    }
    sink = sink + x;
    return x;
}

}  // namespace

int main(int argc, char** argv) {
    const double end = now_seconds() + (argc > 1 ? std::atof(argv[1]) : 5);
    std::uint64_t x = 1;
    while (now_seconds() < end) {
        x = plain_function(x);
        x = caller_of_inlined(x);
        x = template_function<7>(x);
        x = template_function<31>(x);
    }
    std::printf("%llu\n", static_cast<unsigned long long>(x));
    return 0;
}
