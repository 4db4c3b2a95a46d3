// Exceptions that pass through frames with destructors and are rethrown on the way. Much of the time is spent in the
// unwinder of the C++ runtime. Usage: unwind_exceptions SECONDS of CPU time
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "unwind_burn.h"

namespace {

std::uint64_t seed = 88172645463325252U;

struct Guard {
    explicit Guard(unsigned turns) : turns_(turns) {}
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    [[gnu::noinline, gnu::noclone]] ~Guard() { seed = burn(turns_, seed); }
    unsigned turns_;
};

[[gnu::noinline, gnu::noclone]] void throw_leaf(unsigned depth) {
    seed = burn(20000, seed);
    if (seed != 0) throw std::runtime_error(std::to_string(depth));
}

[[gnu::noinline, gnu::noclone]] void throw_middle(unsigned depth) {
    const Guard guard(500);
    if (depth == 0) {
        throw_leaf(depth);
    } else {
        throw_middle(depth - 1);
    }
    KEEP_FRAME();
}

[[gnu::noinline, gnu::noclone]] void rethrow_outer() {
    try {
        throw_middle(6);
    } catch (const std::runtime_error&) {
        seed = burn(1000, seed);
        throw;
    }
}

[[gnu::noinline, gnu::noclone]] void catch_outer() {
    try {
        rethrow_outer();
    } catch (const std::exception& error) {
        seed += error.what()[0];
    }
}

}  // namespace

int main(int argc, char** argv) {
    const auto end = cpu_ns() + static_cast<std::uint64_t>(std::atof(argc > 1 ? argv[1] : "2") * 1e9);
    while (cpu_ns() < end)
        for (int i = 0; i < 100; ++i) catch_outer();
    return seed == 0 ? 1 : 0;
}
