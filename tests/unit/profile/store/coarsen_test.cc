// The row limit: detail is dropped before weight. Dropped weight comes last and is reported as a loss.
#include <catch2/catch.hpp>

#include <algorithm>

#include "../batch_maker.h"

namespace flamewire::profile {

static std::uint64_t lost_samples(const Store& store, wire::LossReason reason) {
    std::uint64_t count = 0;
    for (const LossTotal& loss : store.losses())
        if (loss.by_store && loss.reason == reason) count += loss.count;
    return count;
}

TEST_CASE("old rows are coarsened, sums stay exact, the newest stay whole") {
    BatchMaker maker;
    const wire::Id event = maker.event("cycles", "cycles");
    const wire::Id process = maker.process(5);
    const wire::Id threads[] = {maker.thread(process, 6), maker.thread(process, 7)};
    const wire::Id stacks[] = {maker.stack({maker.named("a")}), maker.stack({maker.named("b")})};
    Store store({.max_rows = 320});
    Weight applied;
    Weight before_10_s;
    for (std::uint64_t bucket = 0; bucket < 2'000; ++bucket) {
        const Weight weight{1 + bucket % 3, 100 + bucket};
        maker.row(bucket, event, threads[bucket % 2], stacks[bucket / 2 % 2],
                  static_cast<std::uint32_t>(weight.samples), weight.weight, static_cast<std::uint32_t>(bucket % 4));
        applied += weight;
        if (bucket < 1'000) before_10_s += weight;
        REQUIRE(store.apply(maker.take()));
        REQUIRE(store.row_count() <= 320);
    }
    CHECK(store.total(1) == applied);
    CHECK(call_tree(store, {}).total == applied);
    // Ranges of whole seconds stay exact: buckets of up to 10 s begin at multiples of 10 s.
    CHECK(call_tree(store, {.end_ns = 10'000'000'000}).total == before_10_s);
    CHECK(lost_samples(store, wire::LossReason::unknown) == 0);
    CHECK(lost_samples(store, wire::LossReason::time_coarsened) > 0);
    CHECK(lost_samples(store, wire::LossReason::time_coarsened) < applied.samples);

    const std::vector<Coverage> coverage = store.coverage();
    REQUIRE(coverage.size() >= 2);
    CHECK_FALSE(coverage.front().whole);
    CHECK(coverage.front().bucket_ns >= 100'000'000);
    CHECK(coverage.front().start_ns == 0);
    CHECK(coverage.back().whole);
    CHECK(coverage.back().bucket_ns == 10'000'000);
    CHECK(coverage.back().end_ns == 20'000'000'000);
    // The last buckets are still separate.
    CHECK(call_tree(store, {.start_ns = 19'990'000'000}).total == Weight{1 + 1'999 % 3, 2'099});
}

TEST_CASE("the oldest rows are dropped when nothing can be merged, and every sample is shown or counted as lost") {
    BatchMaker maker;
    const wire::Id event = maker.event("cycles", "cycles");
    const wire::Id thread = maker.thread(maker.process(5), 6);
    Store store({.max_rows = 100});
    std::uint64_t applied = 0;
    for (std::uint64_t i = 0; i < 3'000; ++i) {
        // Every row has its own stack, so nothing merges.
        maker.row(i, event, thread, maker.stack({maker.named("f" + std::to_string(i))}), 2, 20);
        applied += 2;
        REQUIRE(store.apply(maker.take()));
        REQUIRE(store.row_count() <= 100);
    }
    CHECK(store.total(1).samples + lost_samples(store, wire::LossReason::unknown) == applied);
    CHECK(store.total(1).weight == store.total(1).samples * 10);
    CHECK(call_tree(store, {}).total == store.total(1));
    CHECK(call_tree(store, {.start_ns = 29'990'000'000}).total.samples == 2);
    const std::vector<Coverage> coverage = store.coverage();
    CHECK(coverage.front().dropped);
    CHECK(coverage.front().start_ns == 0);
    CHECK(coverage.back().whole);
}

TEST_CASE("a large number of rows in one bucket stays within the limit, too") {
    BatchMaker maker;
    const wire::Id event = maker.event("cycles", "cycles");
    const wire::Id thread = maker.thread(maker.process(5), 6);
    for (std::uint32_t i = 0; i < 5'000; ++i)
        maker.row(7, event, thread, maker.stack({maker.named("f" + std::to_string(i % 10))}), 1, 1, i);
    Store store({.max_rows = 64});
    REQUIRE(store.apply(maker.take()));
    CHECK(store.row_count() <= 64);
    CHECK(store.total(1).samples + lost_samples(store, wire::LossReason::unknown) == 5'000);
}

TEST_CASE("threads that are merged stay in their process") {
    BatchMaker maker;
    const wire::Id event = maker.event("cycles", "cycles");
    const wire::Id first = maker.process(100);
    const wire::Id second = maker.process(200);
    const wire::Id stack = maker.stack({maker.named("f")});
    std::vector<wire::Id> threads;
    for (std::uint32_t i = 1; i <= 40; ++i) threads.push_back(maker.thread(i % 2 == 0 ? first : second, 1'000 + i));
    Store store({.max_rows = 128});
    for (std::uint64_t bucket = 0; bucket < 4'000; ++bucket) {
        maker.row(bucket, event, threads[bucket % threads.size()], stack, 1, 3, static_cast<std::uint32_t>(bucket % 8));
        REQUIRE(store.apply(maker.take()));
    }
    CHECK(lost_samples(store, wire::LossReason::unknown) == 0);
    CHECK(call_tree(store, {.pids = {100}}).total == Weight{2'000, 6'000});
    CHECK(call_tree(store, {.pids = {200}}).total == Weight{2'000, 6'000});
    std::map<std::uint32_t, std::string> merged;  // by process
    for (const Thread& thread : store.threads())
        if (thread.pid != 0 && thread.tid == 0) merged[thread.pid] = thread.comm;
    CHECK(merged == std::map<std::uint32_t, std::string>{{100, "[threads]"}, {200, "[threads]"}});
    CHECK(store.coverage().front().thread_folded);
    CHECK(store.coverage().front().cpu_folded);
}

TEST_CASE("detail decreases with age, step by step, and nothing is shown before the first or after the last sample") {
    constexpr std::uint64_t first_bucket = 123'456;  // 1,234.56 s: not a multiple of any coarse width
    constexpr std::uint64_t count = 40'000;
    BatchMaker maker;
    const wire::Id event = maker.event("cycles", "cycles");
    const wire::Id process = maker.process(5);
    const wire::Id threads[] = {maker.thread(process, 6), maker.thread(process, 7)};
    std::vector<wire::Id> stacks;
    for (int i = 0; i < 5; ++i) stacks.push_back(maker.stack({maker.named("f" + std::to_string(i))}));
    Store store({.max_rows = 1'600});
    for (std::uint64_t i = 0; i < count; ++i) {
        maker.row(first_bucket + 10 * i, event, threads[i % 2], stacks[i % 5], 1, 7, static_cast<std::uint32_t>(i % 4));
        REQUIRE(store.apply(maker.take()));
        REQUIRE(store.row_count() <= 1'600);
        REQUIRE(store.first_ns() == first_bucket * 10'000'000);
        REQUIRE(store.end_ns() == (first_bucket + 10 * i + 1) * 10'000'000);
    }
    CHECK(lost_samples(store, wire::LossReason::unknown) == 0);
    const std::vector<Coverage> coverage = store.coverage();
    REQUIRE(coverage.size() >= 4);
    for (std::size_t i = 1; i < coverage.size(); ++i) CHECK(coverage[i].bucket_ns <= coverage[i - 1].bucket_ns);
    CHECK(coverage.front().start_ns == store.first_ns());
    CHECK(coverage.back().whole);
    CHECK(coverage.back().end_ns == store.end_ns());
    // Between full and coarsest detail, some range still has its threads.
    CHECK(std::ranges::any_of(coverage, [](const Coverage& one) { return !one.whole && !one.thread_folded; }));

    // The first coarse bucket begins before the first sample. A range from the first sample on includes it.
    const Filter from_first{.start_ns = store.first_ns()};
    CHECK(call_tree(store, from_first).total.samples == count);
    CHECK(call_tree(store, {.start_ns = store.first_ns() - 1}).total.samples == count);
    CHECK(call_tree(store, from_first).newest_ns == store.end_ns());
    std::uint64_t samples = 0;
    for (const Weight& slice : histogram(store, {.start_ns = store.first_ns(), .end_ns = store.end_ns()}, 50))
        samples += slice.samples;
    CHECK(samples == count);
}

}  // namespace flamewire::profile
