#include "views/hits.h"

#include <catch2/catch.hpp>

#include "../profile/batch_maker.h"

using namespace flamewire;
using namespace flamewire::views;
using profile::BatchMaker;
using profile::Store;

namespace {

constexpr std::uint64_t second = 1'000'000'000;

// Reads of two threads: 100 of "one" with sizes 1 to 100, and a failed one of "two".
struct Recorded {
    Recorded() {
        const wire::Id event = maker.event("syscalls:sys_exit_read", "events");
        wire::Event& described = maker.batch().events.back();
        described.traced = true;
        described.fields = {{"ret", wire::FieldKind::signed_number}, {"path", wire::FieldKind::text}};
        described.print_format = "\"0x%lx\", REC->ret";
        const wire::Id process = maker.process(5);
        const wire::Id one = maker.thread(process, 6, "one"), two = maker.thread(process, 7, "two");
        const wire::Id inner = maker.stack({maker.named("main"), maker.named("copy_file"), maker.named("read")});
        const wire::Id outer = maker.stack({maker.named("main")});
        wire::Hits hits{
            .event = event, .fields = 2, .hits = {}, .values = {}, .texts = {"/etc/passwd", "a b"}, .addresses = {}};
        for (std::uint64_t i = 1; i <= 100; ++i) {
            hits.hits.push_back({second + i, one, 1, inner, 1});
            hits.values.insert(hits.values.end(), {i, i % 2});
        }
        hits.hits.push_back({second + 50, two, 0, outer, 17});
        hits.values.insert(hits.values.end(), {static_cast<std::uint64_t>(-2), 0});
        hits.dropped = 4;
        maker.batch().hits.push_back(hits);
        REQUIRE(store.apply(maker.take()));
    }

    std::vector<std::uint64_t> numbers(const std::string& filter, std::size_t limit = 1'000) const {
        const auto list = list_hits(store, HitValues(store), {}, {.filter = filter, .limit = limit, .from = {}});
        REQUIRE(list);
        std::vector<std::uint64_t> found;
        for (const HitRef& ref : list->hits) found.push_back(ref.number());
        return found;
    }

    BatchMaker maker;
    Store store;
};

}  // namespace

TEST_CASE("values as texts") {
    const Recorded recorded;
    const HitValues values(recorded.store);
    const profile::HitChunk& chunk = recorded.store.hits().chunks().front();
    CHECK(values.line({&chunk, 0}) == "ret=1 path=a b");
    CHECK(values.line({&chunk, 100}) == "ret=-2 (ENOENT) path=/etc/passwd");
    CHECK(values.number({&chunk, 100}, 0) == -2.0);
    CHECK_FALSE(values.number({&chunk, 100}, 1));
    CHECK_FALSE(values.field({&chunk, 0}, "size"));
    CHECK(recorded.store.hits().dropped() == 4);
}

TEST_CASE("hits that match a filter") {
    const Recorded recorded;
    CHECK(recorded.numbers("").size() == 101);
    CHECK(recorded.numbers("ret>98") == std::vector<std::uint64_t>{98, 99});
    CHECK(recorded.numbers("ret<0") == std::vector<std::uint64_t>{100});
    CHECK(recorded.numbers("ret=0x10") == std::vector<std::uint64_t>{15});
    CHECK(recorded.numbers("ret~ENOENT comm=two") == std::vector<std::uint64_t>{100});
    CHECK(recorded.numbers("path=\"a b\" ret<=2") == std::vector<std::uint64_t>{0});
    CHECK(recorded.numbers("path!=\"a b\" ret<=2") == std::vector<std::uint64_t>{1, 100});
    CHECK(recorded.numbers("function=copy_file").size() == 100);
    CHECK(recorded.numbers("function!=copy_file") == std::vector<std::uint64_t>{100});
    CHECK(recorded.numbers("leaf=main") == std::vector<std::uint64_t>{100});
    CHECK(recorded.numbers("leaf=copy_file").empty());
    CHECK(recorded.numbers("ret<2.5").size() == 3);
    CHECK(recorded.numbers("passwd tid=7") == std::vector<std::uint64_t>{100});
    CHECK(recorded.numbers("size=1").empty());
    // The newest ones, in time order: the hit of the other thread is the 50th in time.
    CHECK(recorded.numbers("", 2) == std::vector<std::uint64_t>{98, 99});
    const auto refused = list_hits(recorded.store, HitValues(recorded.store), {}, {.filter = "ret!3", .from = {}});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message.find("NAME!=VALUE") != std::string::npos);
}

TEST_CASE("hits of a part of the recording") {
    const Recorded recorded;
    const HitValues values(recorded.store);
    profile::Filter filter;
    filter.start_ns = second + 99;
    CHECK(list_hits(recorded.store, values, filter, {.from = {}})->hits.size() == 2);
    filter = {};
    filter.tids = {7};
    CHECK(list_hits(recorded.store, values, filter, {.from = {}})->matching == 1);
    CHECK(list_hits(recorded.store, values, {}, {.limit = 3, .from = {}})->hits.front().number() == 97);
    CHECK(list_hits(recorded.store, values, {}, {.from = 99})->matching == 2);
}

TEST_CASE("a table of hits by a key") {
    const Recorded recorded;
    const HitValues values(recorded.store);
    const auto table = hit_table(recorded.store, values, {}, "", "comm", "ret");
    REQUIRE(table);
    REQUIRE(table->groups.size() == 2);
    const HitGroup& one = table->groups[0];
    CHECK(one.key == "one");
    CHECK(one.hits == 100);
    CHECK(one.weight == 100);
    CHECK(one.sum == 5'050);
    CHECK(one.average() == 50.5);
    CHECK(one.min == 1);
    CHECK(one.max == 100);
    CHECK(one.p50 == 50);
    CHECK(one.p95 == 95);
    CHECK(one.p99 == 99);
    const HitGroup& two = table->groups[1];
    CHECK(two.key == "two");
    CHECK(two.weight == 17);
    CHECK(two.p99 == -2);
    // 1, 2-3, 4-7, …, 64-127, and -2.
    REQUIRE(table->distribution.size() == 8);
    CHECK(table->distribution[0].low == -4);
    CHECK(table->distribution[0].high == -2);
    CHECK(table->distribution[1].low == 1);
    CHECK(table->distribution[7].low == 64);
    CHECK(table->distribution[7].hits == 37);
    CHECK(hit_table(recorded.store, values, {}, "", "function", "")->groups[0].key == "read");
    CHECK(hit_table(recorded.store, values, {}, "tid=7", "path", "")->groups.size() == 1);
    CHECK_FALSE(hit_table(recorded.store, values, {}, "", "nothing", ""));
    CHECK_FALSE(hit_table(recorded.store, values, {}, "", "comm", "path"));
}

TEST_CASE("the newest hits stay") {
    profile::HitHistory history(10);
    for (std::uint64_t i = 0; i < 5; ++i) {
        profile::HitChunk chunk;
        chunk.hits.resize(4);
        history.add(chunk);
    }
    CHECK(history.size() == 8);
    CHECK(history.next() == 20);
    CHECK(history.chunks().front().first == 12);
}

TEST_CASE("batches with hits that point nowhere are refused") {
    for (int wrong = 0; wrong < 4; ++wrong) {
        BatchMaker maker;
        const wire::Id event = maker.event("a:b", "events");
        const wire::Id thread = maker.thread(maker.process(5), 6);
        wire::Hits hits{.event = event, .fields = 0, .hits = {}, .values = {}, .texts = {}, .addresses = {}};
        hits.hits.push_back({1, thread, 0, 0, 1});
        if (wrong == 0) hits.event = 9;
        if (wrong == 1) hits.hits[0].thread = 9;
        if (wrong == 2) hits.hits[0].stack = 9;
        if (wrong == 3) hits.addresses.push_back({1, 9});
        maker.batch().hits.push_back(hits);
        Store store;
        CHECK_FALSE(store.apply(maker.take()));
    }
}
