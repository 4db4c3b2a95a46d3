#include "unwind/join/movement.h"

#include <catch2/catch.hpp>

using namespace flamewire::unwind;

namespace {

constexpr double period = 10'000'000;

// A thread that moves 1,000 bytes out and in again between its samples.
Movement swinging() {
    Movement movement;
    movement.last_sp = 100'000;
    for (int i = 0; i < 10; ++i)
        for (const std::uint64_t sp : {101'000, 100'000}) {
            movement.note(sp, period);
            movement.last_sp = sp;
        }
    return movement;
}

}  // namespace

TEST_CASE("a movement allows a way that takes up to three periods") {
    const Movement movement = swinging();
    CHECK(movement.possible(101'400, 100'000));        // 1,400 bytes each way: 2.8 periods
    CHECK_FALSE(movement.possible(101'600, 100'000));  // 3.2 periods
    CHECK(movement.ordinary(100'700, 100'000, period));
    CHECK_FALSE(movement.ordinary(100'800, 100'000, period));
}

TEST_CASE("a movement allows a way as long as the longest unseen one") {
    Movement movement = swinging();
    movement.leap = movement.length_of_way(150'000, 100'000);
    CHECK(movement.leap == 100'000u);
    CHECK(movement.possible(150'000, 100'000));
    CHECK_FALSE(movement.possible(150'001, 100'000));
}

TEST_CASE("a movement does not allow any way before the thread moved") {
    Movement movement;
    movement.last_sp = 100'000;
    movement.note(100'000, period);
    CHECK_FALSE(movement.possible(100'008, 100'000));
    CHECK(movement.possible(100'000, 100'000));
}

TEST_CASE("a movement keeps its period over a pause") {
    Movement movement = swinging();
    movement.note(100'000, 1'000 * period);
    CHECK(movement.period_ns < 1.1 * period);
}
