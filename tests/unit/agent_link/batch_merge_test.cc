#include "agent/link/batch_merge.h"

#include <catch2/catch.hpp>

using namespace flamewire;
using namespace flamewire::agent;
using wire::Batch;
using wire::Loss;
using wire::LossReason;
using wire::Row;

namespace {

Batch batch_of(std::uint64_t seq, std::vector<Row> rows) {
    Batch batch;
    batch.recording_id[0] = 1;
    batch.epoch = 3;
    batch.seq = seq;
    batch.monotonic_ns = seq * 1000;
    batch.rows = std::move(rows);
    return batch;
}

Row row(std::uint64_t bucket, wire::Id event, std::uint32_t count) {
    return {.bucket = bucket, .event = event, .thread = 1, .cpu = 0, .stack = 1, .count = count, .weight = count};
}

}  // namespace

TEST_CASE("merging widens buckets, joins tables and counts what became coarser") {
    Batch older = batch_of(5, {row(101, 1, 2), row(103, 1, 3)});
    older.string_base = 7;
    older.strings = {"a", "b"};
    older.losses = {{LossReason::ring_full, 4, 10, 20, 1, 1}};
    Batch newer = batch_of(6, {row(104, 2, 1)});
    newer.string_base = 9;
    newer.strings = {"c"};
    newer.losses = {{LossReason::ring_full, 1, 5, 15, 1, 1},
                    {LossReason::throttled, 9, 1, 1, 0, 0},
                    {LossReason::thread_state_unknown, 7, 1, 1, 0, 0}};
    newer.end = wire::End{"stopped", 0};
    REQUIRE(can_merge(older, newer));

    const Batch merged = merge(older, newer, 40'000'000);
    CHECK(merged.first_seq == 5);
    CHECK(merged.seq == 6);
    CHECK(merged.monotonic_ns == 6000);
    CHECK(merged.string_base == 7);
    CHECK(merged.strings == std::vector<std::string>{"a", "b", "c"});
    CHECK(merged.bucket_ns == 40'000'000);
    // 101 / 4 = 25, 103 / 4 = 25, 104 / 4 = 26.
    CHECK(merged.rows == std::vector<Row>{row(25, 1, 2), row(25, 1, 3), row(26, 2, 1)});
    CHECK(merged.end == wire::End{"stopped", 0});
    CHECK(merged.losses == std::vector<Loss>{{LossReason::ring_full, 5, 5, 20, 1, 1},
                                             {LossReason::throttled, 9, 1, 1, 0, 0},
                                             {LossReason::thread_state_unknown, 7, 1, 1, 0, 0},
                                             {LossReason::time_coarsened, 5, 1'000'000'000, 1'039'999'999, 1, 0},
                                             {LossReason::time_coarsened, 1, 1'040'000'000, 1'079'999'999, 2, 0}});
    CHECK(samples_in(merged) == 6);
    CHECK(lost_in(merged) == 5);

    // With a third batch, the coarsened samples are counted only once.
    const Batch all = merge(merged, batch_of(7, {row(108, 1, 10)}), 160'000'000);
    CHECK(all.first_seq == 5);
    CHECK(all.seq == 7);
    std::uint64_t coarsened = 0;
    for (const Loss& loss : all.losses)
        if (loss.reason == LossReason::time_coarsened) coarsened += loss.count;
    CHECK(coarsened == 16);
}

TEST_CASE("tables with a hole and different epochs are not merged, but bare batches are") {
    Batch older = batch_of(1, {row(1, 1, 1)}), newer = batch_of(2, {row(1, 1, 1)});
    older.locations.resize(3);
    older.location_base = 10;
    newer.locations.resize(1);
    newer.location_base = 14;
    CHECK_FALSE(can_merge(older, newer));
    newer.location_base = 13;
    CHECK(can_merge(older, newer));
    newer.epoch = 4;
    CHECK_FALSE(can_merge(older, newer));

    rows_to_losses(older, LossReason::spool_full);
    CHECK_FALSE(is_bare(older));
    drop_tables(older);
    CHECK(is_bare(older));
    CHECK(can_merge(older, newer));
    const Batch merged = merge(older, newer, wire::default_bucket_ns);
    CHECK(merged.epoch == 4);
    CHECK(merged.location_base == 13);
    CHECK(samples_in(merged) == 1);
    CHECK(lost_in(merged) == 1);
}

TEST_CASE("rows become one loss per event, with the time that they covered") {
    Batch batch = batch_of(1, {row(3, 1, 2), row(9, 1, 5), row(4, 2, 1)});
    batch.losses = {{LossReason::time_coarsened, 8, 0, 1, 1, 0}};
    rows_to_losses(batch, LossReason::spool_full);
    CHECK(batch.rows.empty());
    CHECK(batch.losses == std::vector<Loss>{{LossReason::spool_full, 7, 30'000'000, 99'999'999, 1, 0},
                                            {LossReason::spool_full, 1, 40'000'000, 49'999'999, 2, 0}});
}

TEST_CASE("only the newest unwind entry of a process remains, and it is dropped with the tables") {
    const auto unwind = [](wire::Id process, std::uint64_t samples) {
        wire::ProcessUnwind entry;
        entry.process = process;
        entry.mode = wire::StackMode::dwarf;
        entry.why = "asked for";
        entry.samples = entry.whole = samples;
        return entry;
    };
    Batch older = batch_of(1, {}), newer = batch_of(2, {});
    older.unwinds = {unwind(1, 10), unwind(2, 20), unwind(3, 30)};
    newer.unwinds = {unwind(4, 1), unwind(2, 25)};
    REQUIRE(can_merge(older, newer));
    Batch merged = merge(older, newer, wire::default_bucket_ns);
    CHECK(merged.unwinds ==
          std::vector<wire::ProcessUnwind>{unwind(1, 10), unwind(3, 30), unwind(4, 1), unwind(2, 25)});

    // A process id is valid only in its epoch.
    CHECK_FALSE(is_bare(newer));
    newer.epoch = 4;
    CHECK_FALSE(can_merge(older, newer));
    drop_tables(merged);
    CHECK(merged.unwinds.empty());
    CHECK(is_bare(merged));

    newer.epoch = older.epoch;
    older.unwinds.resize(wire::max_batch_entries / 2);
    CHECK_FALSE(can_merge(older, newer));
}

TEST_CASE("counter readings survive a merge, become longer if there are many, and are dropped with the tables") {
    const auto reading_batch = [](std::uint64_t seq, std::uint64_t start) {
        wire::Batch batch;
        batch.seq = batch.first_seq = seq;
        wire::CounterReading reading{start, start + 10, false, {}};
        reading.values.push_back({1, 2, 0, 0, 0, wire::CounterStatus::counted, 5, 10, 10});
        batch.counters.push_back(reading);
        return batch;
    };
    wire::Batch merged = reading_batch(1, 0);
    CHECK_FALSE(is_bare(merged));
    wire::Batch other_epoch = reading_batch(2, 10);
    other_epoch.epoch = 2;
    CHECK_FALSE(can_merge(merged, other_epoch));
    for (std::uint64_t seq = 2; seq <= 2'000; ++seq)
        merged = merge(std::move(merged), reading_batch(seq, (seq - 1) * 10), wire::default_bucket_ns);
    CHECK(merged.counters.size() <= 512);
    CHECK(merged.counters.size() >= 256);
    std::uint64_t sum = 0, end = 0;
    for (const wire::CounterReading& reading : merged.counters) {
        CHECK(reading.start_ns == end);
        end = reading.end_ns;
        REQUIRE(reading.values.size() == 1);
        sum += reading.values[0].value;
    }
    CHECK(end == 20'000);
    CHECK(sum == 10'000);
    drop_tables(merged);
    CHECK(is_bare(merged));
}

TEST_CASE("thread times are merged into one stretch per thread, but not across a gap") {
    const auto times = [](wire::Id thread, std::uint64_t begin_ns, std::uint64_t end_ns) {
        wire::ThreadTimes one;
        one.thread = thread;
        one.end_ns = end_ns;
        one.state_ns = {end_ns - begin_ns, 0, 0, 0};
        one.preempted = 1;
        one.slices.add(end_ns - begin_ns);
        return one;
    };
    Batch older = batch_of(1, {}), newer = batch_of(2, {});
    older.thread_times = {times(1, 100, 200), times(2, 100, 200), times(1, 200, 300)};
    newer.thread_times = {times(3, 0, 300), times(2, 250, 300), times(1, 300, 400)};
    CHECK_FALSE(is_bare(older));
    const Batch merged = merge(older, newer, wire::default_bucket_ns);
    REQUIRE(merged.thread_times.size() == 4);
    CHECK(merged.thread_times[0].thread == 1);
    CHECK(merged.thread_times[0].end_ns == 400);
    CHECK(merged.thread_times[0].length_ns() == 300);
    CHECK(merged.thread_times[0].preempted == 3);
    CHECK(merged.thread_times[0].slices.count() == 3);
    CHECK(merged.thread_times[1] == times(2, 100, 200));
    CHECK(merged.thread_times[2] == times(3, 0, 300));
    CHECK(merged.thread_times[3] == times(2, 250, 300));
}

TEST_CASE("hits stay while their time stays, and are counted when it becomes coarser") {
    const auto with_hits = [](std::uint64_t seq, std::uint64_t time_ns, const char* text) {
        Batch batch = batch_of(seq, {});
        wire::Hits hits{.event = 1, .fields = 1, .hits = {}, .values = {0}, .texts = {text}, .addresses = {}};
        hits.hits.push_back({time_ns, 1, 0, 0, 1});
        batch.hits.push_back(hits);
        return batch;
    };
    const Batch older = with_hits(1, 100, "a"), newer = with_hits(2, 200, "b");
    CHECK_FALSE(is_bare(older));
    const Batch merged = merge(older, newer, wire::default_bucket_ns);
    REQUIRE(merged.hits.size() == 2);
    CHECK(merged.hits[0] == older.hits[0]);
    CHECK(merged.hits[1] == newer.hits[0]);

    Batch with_rows = newer;
    with_rows.rows = {{.bucket = 7, .event = 1, .thread = 1, .cpu = 0, .stack = 0, .count = 1, .weight = 1}};
    const Batch coarse = merge(older, with_rows, 10 * wire::default_bucket_ns);
    REQUIRE(coarse.hits.size() == 1);
    CHECK(coarse.hits[0].event == 1);
    CHECK(coarse.hits[0].hits.empty());
    CHECK(coarse.hits[0].dropped == 2);

    rows_to_losses(with_rows, wire::LossReason::spool_full);
    REQUIRE(with_rows.hits.size() == 1);
    CHECK(with_rows.hits[0].dropped == 1);
}
