// Known hot lines. Every line that ends in a HOT marker burns most of its function's CPU time; the profile must point at exactly these
// lines, also inside a function that is inlined and inside templates. The rest of each function is light.
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

[[gnu::noinline]] std::uint64_t plain_function(std::uint64_t x) {
    x += 17;
    for (int i = 0; i < 200'000; ++i) {
        x = x * 6364136223846793005ULL + 1442695040888963407ULL; asm volatile("" : "+r"(x));  // HOT plain
    }
    x ^= 99;
    sink = sink + x;
    return x;
}

[[gnu::always_inline]] inline std::uint64_t inlined_function(std::uint64_t x) {
    x += 3;
    for (int i = 0; i < 200'000; ++i) {
        x = x * 2862933555777941757ULL + 3037000493ULL; asm volatile("" : "+r"(x));  // HOT inlined
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
    for (int i = 0; i < 200'000; ++i) {
        x = (x ^ (x >> Shift)) * 0x9E3779B97F4A7C15ULL; asm volatile("" : "+r"(x));  // HOT template
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
