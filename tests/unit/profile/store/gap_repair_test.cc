// Batches of a recording with gaps: rows that the remaining batches describe are shown, the others are counted as lost.
#include "profile/store/gap_repair.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <tuple>

#include "../batch_maker.h"
#include "profile/store/store.h"
#include "profile/store/tables.h"

namespace flamewire::profile {

namespace {

// (bucket, event, process, thread, CPU, stack addresses with the outermost first).
using Key = std::tuple<std::uint64_t, std::string, std::uint32_t, std::uint32_t, std::uint32_t, std::string>;
using Samples = std::map<Key, Weight>;

std::uint64_t sum(const Samples& samples) {
    std::uint64_t all = 0;
    for (const auto& [key, weight] : samples) all += weight.samples;
    return all;
}

// All batches add entries to all tables.
struct Recorded {
    std::vector<wire::Batch> batches;
    std::vector<Samples> samples;  // of each batch
};

Recorded record(std::uint64_t seed, std::size_t batches) {
    std::mt19937_64 random(seed);
    BatchMaker maker;
    Recorded recorded;
    std::vector<std::pair<wire::Id, std::uint32_t>> threads;
    std::vector<std::pair<wire::Id, std::string>> stacks, events;
    std::vector<wire::Id> modules;
    std::vector<std::uint32_t> pids;
    for (std::size_t n = 0; n < batches; ++n) {
        if (n == 0 || random() % 8 == 0) {
            const std::string name = "event" + std::to_string(events.size());
            events.emplace_back(maker.event(name, "ns", 7), name);
        }
        if (n == 0 || random() % 4 == 0) modules.push_back(maker.module("/lib/" + std::to_string(modules.size())));
        if (n == 0 || random() % 3 == 0) {
            const auto tid = static_cast<std::uint32_t>(100 + threads.size());
            threads.emplace_back(maker.thread(maker.process(tid, 5), tid), tid);
        }
        if (n == 0 || random() % 2 == 0) {
            std::vector<wire::Id> frames;
            std::string text;
            for (std::uint64_t depth = 0; depth <= random() % 5; ++depth) {
                const std::uint64_t address = random() % 40;
                const std::size_t module = random() % modules.size();
                frames.push_back(maker.location(modules[module], address));
                text += std::to_string(module) + "+" + std::to_string(address) + ";";
            }
            stacks.emplace_back(maker.stack(frames), text);
        }
        Samples samples;
        for (std::uint64_t row = 0; row < random() % 8; ++row) {
            const auto& [event, event_name] = events[random() % events.size()];
            const auto& [thread, tid] = threads[random() % threads.size()];
            const auto& [stack, text] = stacks[random() % stacks.size()];
            const std::uint64_t bucket = 1000 + n * 10 + row;
            const auto count = static_cast<std::uint32_t>(1 + random() % 3);
            const std::uint64_t weight = random() % 1000;
            maker.row(bucket, event, thread, stack, count, weight, static_cast<std::uint32_t>(row));
            samples[{bucket, event_name, tid, tid, static_cast<std::uint32_t>(row), text}] += {count, weight};
        }
        const bool new_epoch = random() % 10 == 0;
        wire::Batch batch = new_epoch ? maker.take_and_end_epoch() : maker.take();
        batch.seq = n + 1;
        recorded.batches.push_back(std::move(batch));
        recorded.samples.push_back(std::move(samples));
        if (new_epoch) {
            threads.clear(), stacks.clear(), events.clear(), modules.clear();
            // The first entries are as in the first epoch.
            events.emplace_back(maker.event("event0", "ns", 7), "event0");
            modules.push_back(maker.module("/lib/0"));
            threads.emplace_back(maker.thread(maker.process(100, 5), 100), 100);
            stacks.emplace_back(maker.stack({maker.location(modules[0], 1)}), "0+1;");
        }
    }
    return recorded;
}

std::string stack_text(const Store& store, StackId stack) {
    const Store::Tables& tables = store.tables();
    std::string text;
    for (; stack != 0; stack = tables.stacks.parent(stack)) {
        const Location& location = tables.locations[tables.stacks.label(stack)];
        const std::string& path = store.modules()[location.module].identity.path;
        text = path.substr(path.rfind('/') + 1) + "+" + std::to_string(location.address) + ";" + text;
    }
    return text;
}

Samples shown(const Store& store) {
    Samples samples;
    for (const RowChunk& chunk : store.tables().rows.chunks())
        for (std::size_t row = 0; row < chunk.size(); ++row) {
            const Lane& lane = chunk.lanes[chunk.lane[row]];
            const Thread& thread = store.threads()[lane.thread];
            samples[{chunk.base_bucket + chunk.offset[row], store.events()[lane.event].name, thread.pid, thread.tid,
                     lane.cpu, stack_text(store, chunk.stack[row])}] += row_weight(chunk, row);
        }
    return samples;
}

std::uint64_t counted(const Store& store) {
    std::uint64_t count = 0;
    for (const LossTotal& loss : store.losses())
        if (loss.reason == wire::LossReason::batches_missing) count += loss.count;
    return count;
}

}  // namespace

TEST_CASE("rows after missing batches are shown unchanged, or counted") {
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
        CAPTURE(seed);
        const Recorded recorded = record(seed, 30);
        std::mt19937_64 random(seed);
        Store store;
        GapRepair repair;
        bool gap = false, any_gap = false;
        std::uint64_t left = 0;
        Samples whole;
        for (std::size_t n = 0; n < recorded.batches.size(); ++n) {
            if (seed % 10 != 0 && random() % 5 == 0) {
                gap = any_gap = true;
                continue;
            }
            wire::Batch batch = recorded.batches[n];
            left += sum(recorded.samples[n]);
            for (const auto& [key, weight] : recorded.samples[n]) whole[key] += weight;
            repair.begin(batch.epoch, std::exchange(gap, false));
            repair.apply(batch);
            REQUIRE(store.apply(batch));
        }
        const Samples found = shown(store);
        for (const auto& [key, weight] : found) {
            const auto at = whole.find(key);
            REQUIRE(at != whole.end());
            CHECK(at->second == weight);
        }
        CHECK(sum(found) + counted(store) == left);
        if (!any_gap) CHECK(found == whole);
    }
}

TEST_CASE("a missing batch without new entries costs only its own samples") {
    BatchMaker maker;
    const wire::Id event = maker.event("cycles", "ns"), thread = maker.thread(maker.process(1), 2);
    const wire::Id stack = maker.stack({maker.location(maker.module("/a"), 5)});
    maker.row(1, event, thread, stack);
    std::vector<wire::Batch> batches{maker.take()};
    for (std::uint64_t bucket = 2; bucket <= 5; ++bucket) {
        maker.row(bucket, event, thread, stack);
        batches.push_back(maker.take());
    }
    batches.erase(batches.begin() + 2);
    Store store;
    GapRepair repair;
    for (std::size_t n = 0; n < batches.size(); ++n) {
        repair.begin(1, n == 2);
        repair.apply(batches[n]);
        REQUIRE(store.apply(batches[n]));
    }
    CHECK(sum(shown(store)) == 4);
    CHECK(counted(store) == 0);
}

TEST_CASE("entries that depend on a missing entry are missing, and missing names are empty") {
    BatchMaker maker;
    const wire::Id event = maker.event("cycles", "ns");
    wire::Batch first = maker.take();
    const wire::Id module = maker.module("/gone"), process = maker.process(7, 1, 0, "gone");
    (void)maker.take();  // missing
    const wire::Id stack = maker.stack({maker.location(module, 5)}), thread = maker.thread(process, 8, "gone");
    const wire::Id other = maker.thread(maker.process(9, 1, 0, "gone"), 9, "gone");
    const wire::Id fine = maker.stack({maker.location(maker.module("/there"), 5)});
    maker.row(1, event, other, stack, 3);
    maker.row(2, event, thread, fine, 4);
    maker.row(3, event, other, fine, 5);
    maker.batch().lifecycle = {{wire::LifecycleKind::exit, 20'000'000, thread, 0},
                               {wire::LifecycleKind::exit, 30'000'000, other, 0}};
    wire::Batch last = maker.take();
    Store store;
    GapRepair repair;
    repair.begin(1, false);
    repair.apply(first);
    REQUIRE(store.apply(first));
    repair.begin(1, true);
    CHECK(repair.events() == wire::EventTable::with_gaps);
    repair.apply(last);
    REQUIRE(store.apply(last));
    const Samples found = shown(store);
    REQUIRE(found.size() == 1);
    CHECK(found.begin()->first == Key{3, "cycles", 9, 9, 0, "there+5;"});
    CHECK(store.processes()[1].comm.empty());
    REQUIRE(store.losses().size() == 1);
    CHECK(store.losses()[0].reason == wire::LossReason::batches_missing);
    CHECK(store.losses()[0].event == 1);
    CHECK(store.losses()[0].count == 7);
    CHECK(store.losses()[0].first_ns == 10'000'000);
    CHECK(store.losses()[0].last_ns == 20'000'000);
    CHECK(store.threads()[1].ended_ns == 30'000'000);
}

TEST_CASE("hits that refer to missing entries are counted, and the others keep their values") {
    BatchMaker maker;
    const wire::Id event = maker.event("a:b", "events"), there = maker.thread(maker.process(9), 9, "there");
    maker.batch().events.back().traced = true;
    maker.batch().events.back().fields = {{"x", wire::FieldKind::unsigned_number}};
    wire::Batch first = maker.take();
    const wire::Id gone = maker.thread(maker.process(7), 8, "gone");
    (void)maker.take();  // missing
    wire::Hits hits{.event = event, .fields = 1, .hits = {}, .values = {1, 2, 3}, .texts = {}, .addresses = {}};
    hits.hits = {{10, there, 0, 0, 1}, {20, gone, 0, 0, 1}, {30, there, 0, 0, 1}};
    hits.dropped = 5;
    maker.batch().hits.push_back(hits);
    wire::Batch last = maker.take();
    Store store;
    GapRepair repair;
    repair.begin(1, false);
    repair.apply(first);
    REQUIRE(store.apply(first));
    repair.begin(1, true);
    repair.apply(last);
    REQUIRE(store.apply(last));
    CHECK(store.hits().dropped() == 6);
    REQUIRE(store.hits().size() == 2);
    const HitChunk& chunk = store.hits().chunks().front();
    CHECK(chunk.values == std::vector<std::uint64_t>{1, 3});
    CHECK(chunk.hits[1].time_ns == 30);
}

}  // namespace flamewire::profile
