// Each function asks for its own clock, of the System that the thread has.
#include "base/clock.h"

#include <catch2/catch.hpp>

#include "base/system.h"

using namespace flamewire;

namespace {

struct NumberedClocks final : System {
    std::int64_t now(Clock clock) override { return 1'000 + static_cast<std::int64_t>(clock); }
};

}  // namespace

TEST_CASE("each time is of its own clock") {
    NumberedClocks clocks;
    const UseSystem use(&clocks);
    CHECK(monotonic_ns() == 1'000);
    CHECK(realtime_ns() == 1'001);
    CHECK(boottime_ns() == 1'002);
    CHECK(process_cpu_ns() == 1'003);
    CHECK(thread_cpu_ns() == 1'004);
}
