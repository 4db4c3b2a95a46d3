// Each function reads its own clock, from the System of the thread.
#include "base/clock.h"

#include <catch2/catch.hpp>

#include "base/system.h"

using namespace flamewire;

namespace {

struct FixedClocks final : System {
    std::int64_t now(Clock clock) override {
        switch (clock) {
            case Clock::monotonic: return 1;
            case Clock::realtime: return 2;
            case Clock::boottime: return 3;
            case Clock::process_cpu: return 4;
            case Clock::thread_cpu: return 5;
        }
        return 0;
    }
};

}  // namespace

TEST_CASE("each time comes from its own clock") {
    FixedClocks clocks;
    const UseSystem use(&clocks);
    CHECK(monotonic_ns() == 1);
    CHECK(realtime_ns() == 2);
    CHECK(boottime_ns() == 3);
    CHECK(process_cpu_ns() == 4);
    CHECK(thread_cpu_ns() == 5);
}
