// An agent is asked for kernel names only if that can help.
#include "server/link/kernel_name_requests.h"

#include <catch2/catch.hpp>

using flamewire::server::KernelNameRequests;
using namespace std::chrono_literals;

TEST_CASE("kernel names are requested when they have been missing for a second, and again for new ones") {
    KernelNameRequests requests;
    const KernelNameRequests::Clock::time_point begin{1h};
    CHECK_FALSE(requests.due(0, begin));
    CHECK_FALSE(requests.due(5, begin));
    CHECK(requests.due(5, begin + 1s));
    CHECK_FALSE(requests.due(5, begin + 60s));  // the agent has been asked for these
    CHECK(requests.due(6, begin + 61s));
    CHECK_FALSE(requests.due(7, begin + 62s));  // too soon after the last request
    CHECK(requests.due(7, begin + 71s));
    // What is resolved and goes missing again waits for a second again.
    CHECK_FALSE(requests.due(0, begin + 90s));
    CHECK_FALSE(requests.due(1, begin + 91s));
    CHECK(requests.due(1, begin + 92s));
    requests.reset();
    CHECK(requests.due(1, begin + 93s));  // of the next recording
}
