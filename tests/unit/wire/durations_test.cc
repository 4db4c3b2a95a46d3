// Histograms of durations and the times of threads, computed by hand.
#include "wire/durations.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <random>

#include "base/hex.h"
#include "wire/batch.h"

using namespace flamewire;
using namespace flamewire::wire;

TEST_CASE("buckets are one nanosecond wide below 32, and a sixteenth of a power of two above") {
    CHECK(duration_bucket(0) == 0);
    CHECK(duration_bucket(31) == 31);
    CHECK(duration_bucket(32) == 32);
    CHECK(duration_bucket(33) == 32);
    CHECK(duration_bucket(34) == 33);
    CHECK(duration_bucket(1'000'000) == 16 * 15 + (1'000'000 >> 15));
    CHECK(duration_bucket(UINT64_MAX) == duration_buckets - 1);
    for (std::uint32_t bucket = 1; bucket < duration_buckets; ++bucket) {
        CHECK(duration_bucket(bucket_begin_ns(bucket)) == bucket);
        CHECK(duration_bucket(bucket_begin_ns(bucket) - 1) == bucket - 1);
    }
}

TEST_CASE("quantiles match the values within half a bucket, in whatever order they were added") {
    std::mt19937_64 random(7);  // NOLINT(cert-msc51-cpp): the same every time
    std::vector<std::uint64_t> values;
    Durations whole, first, second;
    for (int i = 0; i < 10'000; ++i) {
        const std::uint64_t value = random() >> (random() % 60);
        values.push_back(value);
        whole.add(value);
        (i % 3 == 0 ? first : second).add(value);
    }
    first.add(second);
    CHECK(first == whole);
    std::sort(values.begin(), values.end());
    CHECK(whole.count() == values.size());
    CHECK(whole.min_ns == values.front());
    CHECK(whole.max_ns == values.back());
    for (const std::uint32_t per_mille : {1U, 500U, 950U, 990U, 999U, 1000U}) {
        const auto exact = static_cast<double>(values[values.size() * per_mille / 1000 - 1]);
        CHECK(static_cast<double>(whole.quantile_ns(per_mille)) == Approx(exact).epsilon(1.0 / 31).margin(1));
    }
    Durations one;
    CHECK(one.quantile_ns(500) == 0);
    one.add(std::uint64_t{777'777});
    for (const std::uint32_t per_mille : {1U, 500U, 1000U}) CHECK(one.quantile_ns(per_mille) == 777'777);
}

TEST_CASE("thread times follow the schema") {
    Batch batch;
    batch.recording_id.fill(1);
    batch.seq = 1;
    ThreadTimes times{.thread = 3,
                      .end_ns = 1000,
                      .state_ns = {100, 20, 0, 7},
                      .preempted = 2,
                      .slept = 1,
                      .io_waits = 0,
                      .slices = {},
                      .queued = {}};
    times.slices.add(std::uint64_t{40});
    times.slices.add(std::uint64_t{60});
    times.slices.add(std::uint64_t{60});
    batch.thread_times = {times};
    // 40 >> 1 is 20, so bucket 36. 60 >> 1 is 30, so bucket 46.
    const std::string bytes = to_hex(encode(batch, {}));
    INFO(bytes);
    CHECK(bytes.find("18642014300738024001520f") != std::string::npos);
    CHECK(bytes.ends_with("08a0011028183c2202240a2a020102"));
    EventPeriods periods;
    auto back = decode(as_bytes_view(*from_hex(bytes)), periods);
    REQUIRE(back);
    CHECK(*back == batch);
    CHECK(back->thread_times[0].length_ns() == 127);
    // A stretch that is longer than its end, an invalid bucket, and a count of 0.
    const auto refused = [&](std::string_view from, std::string_view to) {
        std::string changed = bytes;
        const auto at = changed.rfind(from);
        REQUIRE(at != std::string::npos);
        changed.replace(at, from.size(), to);
        EventPeriods none;
        return !decode(as_bytes_view(*from_hex(changed)), none);
    };
    CHECK(refused("10e807", "10e800"));
    CHECK(refused("2a020102", "2a020100"));
    CHECK(refused("2202240a", "22022400"));
}
