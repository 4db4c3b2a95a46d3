// Time of early-exiting threads that samples lack, computed with numbers from the tests.
#include "agent/perf/unsampled.h"

#include <catch2/catch.hpp>

#include <vector>

using namespace flamewire::agent;

namespace {

constexpr std::uint64_t ms = 1'000'000;

UnsampledAccount::Totals totals(std::uint64_t counted, std::uint64_t sampled, std::uint64_t exited) {
    return {.counted = counted,
            .sampled = sampled,
            .all_counted = counted,
            .all_sampled = sampled,
            .samples = sampled / (10 * ms),
            .period = 10 * ms,
            .exited_threads = exited};
}

}  // namespace

TEST_CASE("time that is counted but not sampled is missing, once") {
    UnsampledAccount account;
    const Unsampled first = account.update(totals(1000 * ms, 400 * ms, 300), 0);
    CHECK(first.counted == 1000 * ms);
    CHECK(first.missing == 600 * ms);
    CHECK(first.recent == 600 * ms);
    CHECK(first.exited_threads == 300);
    const Unsampled second = account.update(totals(1500 * ms, 500 * ms, 400), 0);
    CHECK(second.counted == 500 * ms);
    CHECK(second.missing == 400 * ms);
    CHECK(second.exited_threads == 100);
    // Late samples do not make the number negative.
    CHECK(account.update(totals(1500 * ms, 1400 * ms, 400), 0).missing == 0);
    CHECK(account.update(totals(1600 * ms, 500 * ms, 500), 0).missing == 100 * ms);
}

TEST_CASE("not more is missing than exited threads can lack") {
    UnsampledAccount account;
    // At most two periods per thread, because it can run on two CPUs. The rest has another cause.
    CHECK(account.update(totals(1000 * ms, 400 * ms, 10), 0).missing == 200 * ms);
    UnsampledAccount unknown_period;
    CHECK(unknown_period.update({.counted = 1000, .exited_threads = 8}, 0).missing == 1000);
}

TEST_CASE("lost samples and samples still in a ring do not count as missing") {
    UnsampledAccount account;
    UnsampledAccount::Totals lossy = totals(1000 * ms, 400 * ms, 300);
    lossy.lost_samples = 20;
    CHECK(account.update(lossy, 0).missing == 400 * ms);
    UnsampledAccount undrained;
    CHECK(undrained.update(totals(1000 * ms, 400 * ms, 300), 100).missing == 500 * ms);
}

TEST_CASE("less than one percent is reported only when it grows") {
    UnsampledAccount account;
    const Unsampled first = account.update(totals(10'000 * ms, 9'910 * ms, 100), 0);
    CHECK(first.missing == 0);
    CHECK(first.recent == 90 * ms);
    const Unsampled second = account.update(totals(10'100 * ms, 9'910 * ms, 200), 0);
    CHECK(second.missing == 190 * ms);
    CHECK(second.recent == 100 * ms);
}

TEST_CASE("a small part of the total of all targets is not reported") {
    UnsampledAccount account;
    UnsampledAccount::Totals small = totals(100 * ms, 50 * ms, 10);
    small.all_counted = 10'000 * ms;
    CHECK(account.update(small, 0).missing == 0);
    small.all_counted = 5'000 * ms;
    CHECK(account.update(small, 0).missing == 50 * ms);
    small.all_sampled = 100'000 * ms;
    CHECK_FALSE(UnsampledAccount::matters(small));
}

TEST_CASE("less than a period is reported only when it grows") {
    UnsampledAccount account;
    CHECK(account.update(totals(39 * ms, 30 * ms, 1), 0).missing == 0);
    CHECK(account.update(totals(44 * ms, 30 * ms, 1), 0).missing == 14 * ms);
    CHECK(account.update(totals(53 * ms, 30 * ms, 2), 0).missing == 0);
    CHECK(account.update(totals(54 * ms, 30 * ms, 2), 0).missing == 10 * ms);
}

TEST_CASE("counts are read only if the exited threads can lack one percent") {
    CHECK(UnsampledAccount::matters(totals(0, 16'000 * ms, 8)));
    CHECK_FALSE(UnsampledAccount::matters(totals(0, 17'000 * ms, 8)));
    CHECK_FALSE(UnsampledAccount::matters(totals(0, 0, 7)));
    CHECK_FALSE(UnsampledAccount::matters({.exited_threads = 7}));
    CHECK(UnsampledAccount::matters({.exited_threads = 8}));
}

TEST_CASE("whole CPUs are worth their cost if many threads exit all the time and a tenth is missing") {
    const std::uint64_t second = 1'000 * ms;
    const auto report = [](std::uint32_t event, std::uint64_t recent, std::uint64_t exited) {
        return Unsampled{.event = event, .counted = 100, .recent = recent, .exited_threads = exited};
    };
    UnsampledPolicy policy;
    CHECK_FALSE(policy.add({}, second));
    CHECK_FALSE(policy.add(std::vector{report(1, 50, 4)}, second));      // too few threads
    CHECK_FALSE(policy.add(std::vector{report(1, 10, 4)}, second + 1));  // 60 of 200, and 8 threads, for the first time
    CHECK(policy.missing_percent() == 30);
    CHECK(policy.event() == 1);
    CHECK(policy.add(std::vector{report(1, 10, 1)}, second + 2));
    // The next second starts from zero. Targets add up, other events do not count.
    CHECK_FALSE(policy.add(std::vector{report(1, 9, 8), report(1, 9, 8), report(2, 90, 8)}, 3 * second));
    CHECK(policy.missing_percent() == 9);
    CHECK_FALSE(policy.add(std::vector{report(1, 20, 8)}, 3 * second + 1));
    // No thread has exited.
    CHECK_FALSE(policy.add({}, 3 * second + 2));
    CHECK_FALSE(policy.add(std::vector{report(1, 20, 8)}, 3 * second + 3));
    CHECK(policy.add(std::vector{report(1, 20, 8)}, 3 * second + 4));
}
