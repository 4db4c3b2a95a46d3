// Copied batches: the copy's store equals the original store with a filter for the window, whatever the epochs. Invalid
// references are refused and leave the copy unchanged.
#include "profile/store/recording_copy.h"

#include <catch2/catch.hpp>

#include "../batch_maker.h"

namespace flamewire::profile {
namespace {

constexpr std::uint64_t bucket_ns = wire::default_bucket_ns;

struct Copied {
    Store store;
    std::vector<wire::Batch> batches;
    RecordingCopy copy{{9}, [this](wire::Batch batch) -> Result<bool> {
                           // Encoded and decoded, as in a file.
                           if (batch.epoch != epoch) write = read = {};
                           epoch = batch.epoch;
                           wire::learn_periods(batch, write);
                           const wire::Batch back =
                               wire::decode(as_bytes_view(wire::encode(batch, write)), read).value();
                           REQUIRE(store.apply(back));
                           batches.push_back(back);
                           return true;
                       }};
    std::uint32_t epoch = 0;
    wire::EventPeriods write, read;
};

// Samples in buckets 10 and 20, and after a new epoch 110 and 120. Each has a different leaf beside a common one.
std::vector<wire::Batch> two_epochs() {
    BatchMaker maker;
    std::vector<wire::Batch> batches;
    for (const std::uint64_t at : {10U, 20U, 110U, 120U}) {
        const wire::Id event = maker.event("cycles", "cycles", 5);
        const wire::Id app = maker.module("/usr/bin/app", "id");
        const wire::Id thread = maker.thread(maker.process(5), 5);
        const wire::Id root = maker.location(app, 0x100);
        maker.row(at, event, thread, maker.stack({root, maker.location(app, 0x1000 + at)}), 2, 11, 1);
        maker.row(at, event, thread, maker.stack({root, maker.named("jitted")}), 1, 5);
        maker.batch().lifecycle.push_back(
            {wire::LifecycleKind::comm, at * bucket_ns, thread, maker.string("named-at-" + std::to_string(at))});
        maker.batch().losses.push_back({wire::LossReason::ring_full, at, at * bucket_ns, at * bucket_ns, event, 0});
        maker.batch().monotonic_ns = (at + 5) * bucket_ns;
        batches.push_back(at == 20 ? maker.take_and_end_epoch() : maker.take());
    }
    return batches;
}

std::string trees(const Store& store, std::uint64_t start_ns, std::uint64_t end_ns) {
    const Filter filter{.start_ns = start_ns, .end_ns = end_ns};
    return show(store, call_tree(store, filter, {.merge = MergeBy::address}));
}

}  // namespace

TEST_CASE("a copied window gives the same answers as the original") {
    const std::vector<wire::Batch> batches = two_epochs();
    Store whole;
    for (const wire::Batch& batch : batches) REQUIRE(whole.apply(batch));
    for (const auto& [first, end] :
         {std::pair<std::uint64_t, std::uint64_t>{0, 1000}, {20, 120}, {110, 111}, {15, 115}}) {
        Copied copied;
        copied.copy.begin({.start_ns = first * bucket_ns, .end_ns = end * bucket_ns});
        for (const wire::Batch& batch : batches) REQUIRE(copied.copy.add(batch));
        REQUIRE(copied.copy.finish("cut", end * bucket_ns));
        CHECK(trees(copied.store, 0, 1000 * bucket_ns) == trees(whole, first * bucket_ns, end * bucket_ns));
        std::uint64_t lost = 0;
        for (const std::uint64_t at : {10U, 20U, 110U, 120U})
            if (at >= first && at < end) lost += at;
        CHECK(copied.store.losses().size() == (lost != 0 ? 1 : 0));
        if (lost != 0) CHECK(copied.store.losses()[0].count == lost);
        CHECK(copied.store.end()->reason == "cut");
    }
}

TEST_CASE("a thread has the name that it had before the window, and tables hold only used entries") {
    BatchMaker maker;
    const wire::Id event = maker.event("cycles", "cycles");
    const wire::Id thread = maker.thread(maker.process(5), 5, "first");
    maker.row(10, event, thread, maker.stack({maker.named("unused")}));
    maker.batch().lifecycle.push_back({wire::LifecycleKind::comm, 11 * bucket_ns, thread, maker.string("second")});
    const wire::Batch before = maker.take();
    maker.row(50, event, thread, maker.stack({maker.named("used")}));
    Copied copied;
    copied.copy.begin({.start_ns = 50 * bucket_ns, .end_ns = 60 * bucket_ns});
    REQUIRE(copied.copy.add(before));
    REQUIRE(copied.copy.add(maker.take()));
    REQUIRE(copied.copy.finish("cut", 60 * bucket_ns));
    CHECK(copied.store.threads()[1].comm == "second");
    for (const wire::Batch& batch : copied.batches)
        for (const std::string& text : batch.strings) CHECK(text != "unused");
}

TEST_CASE("processes of separate machines stay separate, and times are shifted") {
    const std::vector<wire::Batch> batches = two_epochs();
    for (const std::uint32_t apart : {0U, 1U}) {
        Copied copied;
        for (std::uint32_t machine = 0; machine < 2; ++machine) {
            copied.copy.begin({.shift_ns = static_cast<std::int64_t>(machine * 1000 * bucket_ns),
                               .realtime_ns = 1,
                               .apart = apart * (machine + 1)});
            for (const wire::Batch& batch : batches) REQUIRE(copied.copy.add(batch));
        }
        REQUIRE(copied.copy.finish("merged", 3000 * bucket_ns));
        CHECK(copied.store.total(0).samples == 24);
        CHECK(copied.store.processes().size() == 2 + apart);
        CHECK(copied.store.threads().size() == 2 + apart);
        CHECK(trees(copied.store, 0, 1000 * bucket_ns) == trees(copied.store, 1000 * bucket_ns, 2000 * bucket_ns));
        CHECK(copied.store.end_ns() == 1121 * bucket_ns);
    }
}

TEST_CASE("counters keep their names, units, parts and threads") {
    BatchMaker maker;
    const wire::Id thread = maker.thread(maker.process(5), 6, "worker");
    maker.string("unused");
    wire::CounterReading reading;
    reading.start_ns = 10;
    reading.end_ns = 20;
    wire::CounterValue& value = reading.values.emplace_back();
    value.name = maker.string("cycles");
    value.unit = maker.string("ticks");
    value.part = maker.string("cpu_atom");
    value.thread = thread;
    value.value = 9;
    maker.batch().counters.push_back(reading);
    Copied copied;
    copied.copy.begin({});
    REQUIRE(copied.copy.add(maker.take()));
    REQUIRE(copied.copy.finish("cut", 20));
    const auto series = copied.store.counters().series();
    REQUIRE(series.size() == 1);
    CHECK(copied.store.string(series[0].key.name) == "cycles");
    CHECK(copied.store.string(series[0].key.unit) == "ticks");
    CHECK(copied.store.string(series[0].key.part) == "cpu_atom");
    CHECK(copied.store.threads()[series[0].key.thread].tid == 6);
    REQUIRE(series[0].points.size() == 1);
    CHECK(series[0].points[0].value == 9);
}

TEST_CASE("a batch with an invalid reference is refused, and the next one is copied") {
    std::vector<wire::Batch> batches = two_epochs();
    const auto refused = [&](auto damage) {
        wire::Batch bad = batches[1];
        damage(bad);
        Copied copied;
        copied.copy.begin({});
        REQUIRE(copied.copy.add(batches[0]));
        const auto added = copied.copy.add(bad);
        REQUIRE_FALSE(added);
        CHECK(added.error().code == ErrorCode::invalid);
        // Later batches cannot use its entries either.
        wire::Batch user = batches[0];
        for (wire::Row& row : user.rows) row.stack = batches[1].stack_base;
        CHECK_FALSE(copied.copy.add(user));
        REQUIRE(copied.copy.finish("cut", 0));
        CHECK(copied.store.total(0).samples == 3);
    };
    refused([](wire::Batch& bad) { bad.rows[0].stack = 99; });
    refused([](wire::Batch& bad) { bad.rows[0].thread = 99; });
    refused([](wire::Batch& bad) { bad.rows[0].event = 99; });
    refused([](wire::Batch& bad) { bad.rows[0].bucket = ~std::uint64_t{0}; });
    refused([](wire::Batch& bad) { bad.stacks[0].parent = bad.stack_base; });  // its own parent
    refused([](wire::Batch& bad) { bad.stacks[0].location = 99; });
    refused([](wire::Batch& bad) { bad.locations[0].module = 99; });
    refused([](wire::Batch& bad) { bad.stack_base += 5; });
    refused([](wire::Batch& bad) { bad.lifecycle[0].comm = 99; });
    refused([](wire::Batch& bad) { bad.losses[0].event = 99; });
    refused([](wire::Batch& bad) { bad.bucket_ns = 0; });
}

TEST_CASE("hits of the window keep their values, threads, stacks and places") {
    BatchMaker maker;
    const wire::Id event = maker.event("a:b", "events"), thread = maker.thread(maker.process(5), 6, "worker");
    maker.batch().events.back().traced = true;
    maker.batch().events.back().fields = {{"path", wire::FieldKind::text}, {"ip", wire::FieldKind::address}};
    const wire::Id place = maker.named("caller"), stack = maker.stack({maker.named("main")});
    wire::Hits hits{.event = event, .fields = 2, .hits = {}, .values = {}, .texts = {"one", "two"}, .addresses = {}};
    for (std::uint64_t i = 0; i < 10; ++i) {
        hits.hits.push_back({(100 + i) * bucket_ns, thread, 1, stack, 3});
        hits.values.insert(hits.values.end(), {i % 2, 0x1000});
    }
    hits.addresses = {{0x1000, place}};
    hits.dropped = 4;
    maker.batch().hits.push_back(hits);
    maker.batch().monotonic_ns = 200 * bucket_ns;
    Copied copied;
    copied.copy.begin({.start_ns = 103 * bucket_ns, .end_ns = 106 * bucket_ns, .shift_ns = 50});
    REQUIRE(copied.copy.add(maker.take()));
    REQUIRE(copied.copy.finish("cut", 106 * bucket_ns));
    const HitHistory& kept = copied.store.hits();
    REQUIRE(kept.size() == 3);
    CHECK(kept.dropped() == 0);  // of another time
    const HitChunk& chunk = kept.chunks().front();
    CHECK(chunk.hits[0].time_ns == 103 * bucket_ns + 50);
    CHECK(copied.store.threads()[chunk.hits[0].thread].comm == "worker");
    CHECK(chunk.hits[2].weight == 3);
    CHECK(chunk.text(chunk.values_of(0)[0]) == "two");
    CHECK(chunk.text(chunk.values_of(1)[0]) == "one");
    CHECK(chunk.place_of(0x1000) != 0);
    CHECK(copied.store.events()[chunk.event].fields.size() == 2);
}

}  // namespace flamewire::profile
