// The bench workload: two busy threads with more than 2,000 distinct stacks in 10 s, of a mean depth above 15, with
// frames of libc and libstdc++. Mutually recursive functions evaluate a random expression tree whose leaves sort,
// format and search maps. Usage: bench-workload SECONDS [THREADS]. Every 100 ms it prints the time (CLOCK_MONOTONIC)
// and the number of rounds of work that all threads have completed.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {

struct State {
    std::uint64_t seed;
    std::map<std::string, std::uint64_t> words;
    std::vector<std::uint32_t> numbers = std::vector<std::uint32_t>(256);
    std::string text;
    double value = 1;

    std::uint64_t next() {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        return seed;
    }
};

using Function = void (*)(State&, int);
extern const Function inner[6];
extern const Function leaves[6];

[[gnu::noinline]] void descend(State& state, int depth) {
    if (depth <= 0)
        leaves[state.next() % 6](state, 0);
    else
        inner[state.next() % 6](state, depth - 1);
    state.value += 1;
}

[[gnu::noinline]] void add(State& state, int depth) {
    descend(state, depth);
    state.value += 0.5;
}
[[gnu::noinline]] void multiply(State& state, int depth) {
    descend(state, depth);
    state.value *= 1.0001;
}
[[gnu::noinline]] void negate(State& state, int depth) {
    descend(state, depth);
    state.value = -state.value;
}
[[gnu::noinline]] void clamp(State& state, int depth) {
    descend(state, depth);
    state.value = std::min(state.value, 1e6);
}
[[gnu::noinline]] void branch(State& state, int depth) {
    descend(state, depth - 2);
    state.value -= 1;
}
[[gnu::noinline]] void call(State& state, int depth) {
    descend(state, depth - 1);
    state.value += 2;
}

int compare_numbers(const void* a, const void* b) {
    std::uint32_t x = 0;
    std::uint32_t y = 0;
    std::memcpy(&x, a, sizeof x);
    std::memcpy(&y, b, sizeof y);
    return x < y ? -1 : static_cast<int>(x > y);
}

[[gnu::noinline]] void leaf_sort(State& state, int) {
    for (std::uint32_t& number : state.numbers) number = static_cast<std::uint32_t>(state.next());
    std::sort(state.numbers.begin(), state.numbers.end());
}
[[gnu::noinline]] void leaf_qsort(State& state, int) {
    for (std::uint32_t& number : state.numbers) number = static_cast<std::uint32_t>(state.next());
    std::qsort(state.numbers.data(), 16, sizeof(std::uint32_t), compare_numbers);
}
[[gnu::noinline]] void leaf_map(State& state, int) {
    for (int i = 0; i < 12; ++i) ++state.words["word " + std::to_string(state.next() % 500)];
    if (state.words.size() > 400) state.words.clear();
}
[[gnu::noinline]] void leaf_format(State& state, int) {
    char buffer[96];
    for (int i = 0; i < 2; ++i) {
        std::snprintf(buffer, sizeof buffer, "%.17g %llu", state.value, static_cast<unsigned long long>(state.next()));
        state.text += buffer;
    }
    if (state.text.size() > 4096) state.text.clear();
}
[[gnu::noinline]] void leaf_math(State& state, int) {
    for (int i = 0; i < 20; ++i) state.value += std::sin(state.value) * std::exp(-static_cast<double>(i));
}
[[gnu::noinline]] void leaf_copy(State& state, int) {
    std::vector<std::uint32_t> copy = state.numbers;
    std::reverse(copy.begin(), copy.end());
    std::memmove(state.numbers.data(), copy.data(), copy.size() * sizeof(std::uint32_t));
}

const Function inner[6] = {add, multiply, negate, clamp, branch, call};
const Function leaves[6] = {leaf_sort, leaf_qsort, leaf_map, leaf_format, leaf_math, leaf_copy};

std::atomic<std::uint64_t> rounds{0};

double now_seconds() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Real programs repeat their call paths, so the same pool of paths through the tree is walked repeatedly.
void run(double seconds, std::uint64_t seed, bool prints) {
    State state{seed, {}, {}, {}, 1};
    state.numbers.resize(256);
    std::vector<std::uint64_t> paths(24);
    for (std::uint64_t& path : paths) path = state.next() | 1;
    double now = now_seconds();
    const double end = now + seconds;
    double next_line = prints ? now : end;
    for (; now < end; now = now_seconds()) {
        if (now >= next_line) {
            std::printf("%.6f %llu\n", now, static_cast<unsigned long long>(rounds.load()));
            std::fflush(stdout);
            next_line += 0.1;
        }
        for (int i = 0; i < 50; ++i) {
            const std::uint64_t random = state.next();
            state.seed = paths[random % paths.size()];
            descend(state, 16 + static_cast<int>(state.next() % 14));
            state.seed ^= random | 1;
        }
        rounds.fetch_add(1, std::memory_order_relaxed);
    }
    if (state.value == 0.123) std::puts("unlikely");
}

}  // namespace

int main(int argc, char** argv) {
    const double seconds = argc > 1 ? std::atof(argv[1]) : 10;
    const int count = argc > 2 ? std::atoi(argv[2]) : 2;
    std::vector<std::thread> threads;
    for (int i = 1; i < count; ++i)
        threads.emplace_back(run, seconds, 88172645463325252ULL * static_cast<std::uint64_t>(i + 1) | 1, false);
    run(seconds, 88172645463325252ULL, true);
    for (std::thread& thread : threads) thread.join();
    return 0;
}
