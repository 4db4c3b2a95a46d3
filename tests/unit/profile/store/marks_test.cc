#include "profile/store/marks.h"

#include <catch2/catch.hpp>

#include <cstdint>

#include "../batch_maker.h"

using namespace flamewire;
using namespace flamewire::profile;

namespace {

constexpr std::uint64_t second = 1'000'000'000;

Mark loss(std::uint64_t start_ns, std::uint64_t end_ns, std::uint64_t count,
          wire::LossReason reason = wire::LossReason::ring_full) {
    return {.kind = MarkKind::loss, .start_ns = start_ns, .end_ns = end_ns, .count = count, .reason = reason};
}

Mark moment(MarkKind kind, std::uint64_t at_ns) { return {.kind = kind, .start_ns = at_ns, .end_ns = at_ns}; }

}  // namespace

TEST_CASE("marks are found by the time that they cover, in order") {
    Marks marks;
    marks.add(moment(MarkKind::exit, 9 * second));
    marks.add(moment(MarkKind::exec, 2 * second));
    marks.add({.kind = MarkKind::reconnect, .start_ns = 3 * second, .end_ns = 6 * second});
    marks.add(moment(MarkKind::exec, 1 * second));  // late, from another CPU
    const auto all = marks.between(0, UINT64_MAX, 0);
    REQUIRE(all.size() == 4);
    CHECK(all[0].start_ns == 1 * second);
    CHECK(all[3].kind == MarkKind::exit);
    REQUIRE(marks.between(5 * second, 7 * second, 0).size() == 1);
    CHECK(marks.between(5 * second, 7 * second, 0)[0].kind == MarkKind::reconnect);
    CHECK(marks.between(7 * second, 9 * second, 0).empty());  // the end is exclusive
    marks.add({.kind = MarkKind::exec, .start_ns = 5, .end_ns = 4});
    CHECK(marks.between(0, UINT64_MAX, 0).size() == 4);
}

TEST_CASE("a continued loss is one mark, separate for each reason") {
    Marks marks;
    marks.add(loss(1 * second, 2 * second, 10));
    marks.add(loss(2 * second, 2 * second, 3, wire::LossReason::throttled));
    marks.add(loss(2 * second + second / 2, 3 * second, 5));
    marks.add(loss(10 * second, 10 * second, 7));
    const auto all = marks.between(0, UINT64_MAX, 0);
    REQUIRE(all.size() == 3);
    CHECK(all[0] == loss(1 * second, 3 * second, 15));
    CHECK(all[1].reason == wire::LossReason::throttled);
    CHECK(all[2].count == 7);
}

TEST_CASE("neighbors within a slice are merged, with the sum of their counts") {
    Marks marks;
    for (std::uint64_t i = 0; i < 100; ++i) {
        marks.add(moment(MarkKind::exec, i * second));
        marks.add(moment(MarkKind::exit, i * second + second / 2));
    }
    const auto merged = marks.between(0, UINT64_MAX, 10 * second);
    REQUIRE(merged.size() == 20);
    for (const Mark& mark : merged) CHECK(mark.count == 10);
    CHECK(merged[0].end_ns == 9 * second);
}

TEST_CASE("a day of starting and ending processes stays within its bounds, and all are counted") {
    Marks marks(1000);
    std::uint64_t added = 0;
    for (std::uint64_t i = 0; i < 86'400; ++i, ++added) marks.add(moment(MarkKind::begin, i * second));
    const auto all = marks.between(0, UINT64_MAX, 0);
    CHECK(all.size() <= 1000);
    CHECK(all.size() > 400);
    CHECK(all.front().start_ns == 0);
    std::uint64_t counted = 0;
    for (const Mark& mark : all) counted += mark.count;
    CHECK(counted == added);
    for (std::size_t i = all.size() - 300; i < all.size(); ++i) REQUIRE(all[i].count == 1);
    // Merging is even: no mark has more than four times the average of the older half.
    for (const Mark& mark : all) REQUIRE(mark.count <= 4 * 86'400 / 400);
    CHECK(marks.memory_bytes() < 300'000);
}

TEST_CASE("losses with alternating reasons are merged separately") {
    Marks marks(100);
    for (std::uint64_t i = 0; i < 10'000; ++i) {
        marks.add(loss(i * 4 * second, i * 4 * second, 1));
        marks.add(loss(i * 4 * second + second, i * 4 * second + second, 1, wire::LossReason::throttled));
    }
    const auto all = marks.between(0, UINT64_MAX, 0);
    CHECK(all.size() <= 100);
    std::uint64_t ring = 0, throttled = 0;
    for (const Mark& mark : all) (mark.reason == wire::LossReason::ring_full ? ring : throttled) += mark.count;
    CHECK(ring == 10'000);
    CHECK(throttled == 10'000);
}

TEST_CASE("batches add marks for processes and losses, not for threads") {
    BatchMaker maker;
    const wire::Id process = maker.process(42);
    const wire::Id main = maker.thread(process, 42, "sh"), other = maker.thread(process, 43, "worker");
    maker.batch().monotonic_ns = 20 * second;
    maker.batch().lifecycle = {{wire::LifecycleKind::fork, 1 * second, main, 0},
                               {wire::LifecycleKind::fork, 2 * second, other, 0},
                               {wire::LifecycleKind::exec, 3 * second, main, maker.string("make")},
                               {wire::LifecycleKind::comm, 4 * second, other, maker.string("pool")},
                               {wire::LifecycleKind::exit, 5 * second, main, 0},
                               {wire::LifecycleKind::exit, UINT64_MAX, main, 0}};
    maker.batch().losses = {{wire::LossReason::ring_full, 7, 8 * second, 9 * second, 0, 0},
                            {wire::LossReason::stack_truncated, 7, 8 * second, 9 * second, 0, 0},
                            {wire::LossReason::unknown, 2, 0, 0, 0, 0}};
    Store store;
    REQUIRE(store.apply(maker.take()));
    store.note_reconnect(10 * second, 12 * second);
    const auto marks = store.marks().between(0, UINT64_MAX, 0);
    REQUIRE(marks.size() == 6);
    CHECK((marks[0].kind == MarkKind::begin && store.string(marks[0].name) == "sh"));
    CHECK((marks[1].kind == MarkKind::exec && store.string(marks[1].name) == "make"));
    CHECK((marks[2].kind == MarkKind::exit && store.string(marks[2].name) == "make"));
    CHECK((marks[3].kind == MarkKind::loss && marks[3].count == 7 && marks[3].end_ns == 9 * second));
    CHECK((marks[4].kind == MarkKind::reconnect && marks[4].end_ns == 12 * second));
    // The loss has no time, so it gets the time of the batch.
    CHECK((marks[5].kind == MarkKind::loss && marks[5].start_ns == 20 * second));
    CHECK(store.known_until_ns() == 20 * second);
}
