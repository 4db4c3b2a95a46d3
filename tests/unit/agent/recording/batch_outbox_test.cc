#include "agent/recording/batch_outbox.h"

#include <catch2/catch.hpp>

#include <memory>
#include <utility>

#include "../recorded.h"

using namespace flamewire;
using namespace flamewire::agent;

namespace {

constexpr std::uint64_t samples_per_batch = 3;

std::unique_ptr<ClosedBatch> batch(std::uint64_t seq) {
    auto closed = std::make_unique<ClosedBatch>();
    closed->batch.seq = seq;
    closed->periods = {0, 1};
    wire::Row row;
    row.count = samples_per_batch - 1;
    closed->batch.rows.push_back(row);
    row.count = 1;
    closed->batch.rows.push_back(row);
    return closed;
}

}  // namespace

TEST_CASE("an outbox keeps batches in order while the sink has no room") {
    MemorySink sink;
    RecorderSnapshot snapshot;
    BatchOutbox outbox(sink, snapshot);
    CHECK(outbox.push());
    sink.refusals = 1;
    outbox.add(batch(1));
    CHECK_FALSE(outbox.push());
    outbox.add(batch(2));
    CHECK(snapshot.accounting().batches == 0);
    CHECK(outbox.backlog().queue_batches == sink.backlog().queue_batches + 2);
    CHECK(outbox.push());
    REQUIRE(sink.batches.size() == 2);
    CHECK(sink.batches.front().seq == 1);
    CHECK(sink.batches.back().seq == 2);
    CHECK(snapshot.accounting().batches == 2);
    CHECK(snapshot.accounting().rows_samples == 2 * samples_per_batch);
    CHECK(outbox.backlog().queue_batches == sink.backlog().queue_batches);
}

TEST_CASE("an outbox passes nothing on after an error of the sink") {
    MemorySink sink;
    RecorderSnapshot snapshot;
    BatchOutbox outbox(sink, snapshot);
    sink.broken = true;
    outbox.add(batch(1));
    CHECK_FALSE(outbox.push());
    REQUIRE(outbox.error().has_value());
    CHECK(outbox.error()->message == "no space");
    sink.broken = false;
    CHECK_FALSE(outbox.push());
    outbox.push_last(0);
    CHECK(sink.batches.empty());
    CHECK(snapshot.accounting().rows_samples == 0);
}
