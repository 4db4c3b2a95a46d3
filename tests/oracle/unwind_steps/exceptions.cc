// Exceptions thrown through frames with and without cleanups.
#include "program.h"

namespace {

struct Guard {
    explicit Guard(int value) : value_(value) {}
    ~Guard() { sink = leaf(value_); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    int value_;
};

struct Thrown {
    int value;
};

[[gnu::noinline]] int thrower(int depth) {
    const Guard guard(depth);
    if (depth == 0) throw Thrown{leaf(4)};
    return thrower(depth - 1) + 1;
}

[[gnu::noinline]] int plain(int depth) { return thrower(depth) + leaf(2); }

}  // namespace

int throws_through_frames(int depth) {
    int sum = 0;
    try {
        sum = plain(depth);
    } catch (const Thrown& thrown) {
        sum = leaf(thrown.value);
    }
    return sum + leaf(1);
}
