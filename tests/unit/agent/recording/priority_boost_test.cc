#include "agent/recording/priority_boost.h"

#include <catch2/catch.hpp>

#include <vector>

using namespace flamewire::agent;

namespace {

std::vector<bool> changes;
void set(bool boost) { changes.push_back(boost); }

}  // namespace

TEST_CASE("the priority is raised until five seconds after the last reason") {
    changes.clear();
    PriorityBoost boost(set);
    boost.update(1);
    CHECK(changes.empty());
    boost.begin();
    CHECK(changes == std::vector{true});
    constexpr std::uint64_t opened_ns = 1'000;
    boost.update(opened_ns);
    boost.update(opened_ns + priority_boost_ns - 1);
    boost.begin();  // a loss
    boost.update(opened_ns + priority_boost_ns);
    boost.update(opened_ns + 2 * priority_boost_ns - 1);
    CHECK(changes == std::vector{true});
    boost.update(opened_ns + 2 * priority_boost_ns);
    CHECK(changes == std::vector{true, false});
    boost.update(opened_ns + 3 * priority_boost_ns);
    boost.begin();
    CHECK(changes == std::vector{true, false, true});
}
