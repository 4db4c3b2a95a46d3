// A single-threaded program with phases: in each round it parses text, computes with floating point and sleeps, each
// for the same time. At each change it prints "CLOCK_MONOTONIC_ns phase" (parse, compute, sleep, and finally end), so
// the output shows what it did when. Usage: phases-workload [PHASE_SECONDS [ROUNDS]]
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>

#include "cpu_budget.h"

namespace {

constexpr std::uint64_t ns_per_s = 1'000'000'000;

std::uint64_t monotonic_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * ns_per_s + static_cast<std::uint64_t>(now.tv_nsec);
}

void announce(const char* phase) {
    std::printf("%llu %s\n", static_cast<unsigned long long>(monotonic_ns()), phase);
    std::fflush(stdout);
}

// Words and numbers in an order that a branch predictor cannot learn.
std::string make_text() {
    std::string text;
    std::uint64_t seed = 88172645463325252ULL;
    while (text.size() < 200'000) {
        seed = workload::mix(seed);
        if (seed % 3 == 0) {
            text += std::to_string(seed % 1'000'000);
        } else {
            for (std::uint64_t left = seed % 11 + 1; left > 0; --left)
                text += static_cast<char>('a' + (seed >> (left * 4)) % 26);
        }
        text += (seed & 64) != 0 ? ' ' : '\n';
    }
    return text;
}

}  // namespace

struct Tokens {
    std::uint64_t words = 0, numbers = 0, lines = 0;
};

[[gnu::noinline]] std::uint64_t read_number(std::string_view text, std::size_t& at) {
    std::uint64_t number = 0;
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at)
        number = number * 10 + static_cast<std::uint64_t>(text[at] - '0');
    return number;
}

[[gnu::noinline]] std::uint64_t read_word(std::string_view text, std::size_t& at) {
    std::uint64_t hash = 5381;
    for (; at < text.size() && text[at] >= 'a' && text[at] <= 'z'; ++at)
        hash = hash * 33 + (text[at] == 'e' || text[at] == 'a' ? 1 : static_cast<std::uint64_t>(text[at]));
    return hash;
}

[[gnu::noinline]] std::uint64_t phase_parse(std::string_view text, std::uint64_t until_ns) {
    Tokens tokens;
    std::uint64_t sum = 0;
    while (monotonic_ns() < until_ns) {  // checked once per text: every few hundred microseconds
        for (std::size_t at = 0; at < text.size();) {
            if (text[at] >= '0' && text[at] <= '9') {
                sum += read_number(text, at);
                ++tokens.numbers;
            } else if (text[at] >= 'a') {
                sum ^= read_word(text, at);
                ++tokens.words;
            } else {
                if (text[at++] == '\n') ++tokens.lines;
            }
        }
    }
    return sum + tokens.words + 3 * tokens.numbers + 5 * tokens.lines;
}

struct Body {
    double x = 0, y = 0, vx = 0, vy = 0;
};

[[gnu::noinline]] void step_orbit(Body& body, double dt) {
    for (int i = 0; i < 2'000; ++i) {
        const double squared = body.x * body.x + body.y * body.y + 1e-3;
        const double pull = -1.0 / (squared * std::sqrt(squared));
        body.vx += pull * body.x * dt;
        body.vy += pull * body.y * dt;
        body.x += body.vx * dt;
        body.y += body.vy * dt;
    }
}

[[gnu::noinline]] double sum_series(double x) {
    double sum = 0, term = 1;
    for (int i = 1; i < 4'000; ++i) {
        term *= x / (1.0 + 1.0 / i);
        sum += term / (term * term + i);
    }
    return sum;
}

[[gnu::noinline]] double phase_compute(std::uint64_t until_ns) {
    Body body{1, 0, 0, 1};
    double sum = 0;
    while (monotonic_ns() < until_ns) {
        for (int i = 0; i < 10; ++i) {
            step_orbit(body, 1e-3);
            sum += sum_series(0.999 + body.x * 1e-6);
        }
    }
    return sum + body.y;
}

[[gnu::noinline]] void phase_sleep(std::uint64_t until_ns) {
    const timespec until{static_cast<std::time_t>(until_ns / ns_per_s), static_cast<long>(until_ns % ns_per_s)};
    while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) != 0) {
    }
}

int main(int argc, char** argv) {
    const double phase_seconds = argc > 1 ? std::atof(argv[1]) : 3;
    const long rounds = argc > 2 ? std::atol(argv[2]) : 1'000'000;
    const auto phase_ns = static_cast<std::uint64_t>(phase_seconds * 1e9);
    const std::string text = make_text();
    std::uint64_t parsed = 0;
    double computed = 0;
    for (long round = 0; round < rounds; ++round) {
        announce("parse");
        parsed += phase_parse(text, monotonic_ns() + phase_ns);
        announce("compute");
        computed += phase_compute(monotonic_ns() + phase_ns);
        announce("sleep");
        phase_sleep(monotonic_ns() + phase_ns);
    }
    announce("end");
    return parsed == 1 && computed == 1.0 ? 1 : 0;
}
