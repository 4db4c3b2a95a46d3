#include "agent/perf/owners.h"

#include <catch2/catch.hpp>

using namespace flamewire;
using namespace flamewire::agent;

TEST_CASE("of two sets on a thread, only one counts") {
    ThreadOwners owners;
    CHECK(owners.accept(10, 0, 1));
    CHECK_FALSE(owners.accept(10, 0, 2));
    CHECK(owners.accept(10, 0, 1));
    // Each CPU and each thread has its own owner.
    CHECK(owners.accept(10, 1, 2));
    CHECK_FALSE(owners.accept(10, 1, 1));
    CHECK(owners.accept(11, 0, 2));
    CHECK(owners.accept(10, 0, 1));
    CHECK(owners.size() == 2);
}

TEST_CASE("owners are dropped with the thread") {
    ThreadOwners owners;
    CHECK(owners.accept(10, 0, 1));
    owners.forget(10);
    CHECK(owners.accept(10, 0, 2));  // another thread with this tid
    CHECK_FALSE(owners.accept(10, 0, 1));
    owners.forget_all();
    CHECK(owners.size() == 0);
    CHECK(owners.accept(10, 0, 1));
}

TEST_CASE("a partial set and a complete set count a thread once per CPU") {
    // Inherited: only CPU 0 of set 1. Opened: set 2 on both CPUs. Samples alternate.
    ThreadOwners owners;
    int counted = 0;
    for (int i = 0; i < 100; ++i) {
        counted += owners.accept(7, 0, 1) ? 1 : 0;
        counted += owners.accept(7, 0, 2) ? 1 : 0;
        counted += owners.accept(7, 1, 2) ? 1 : 0;
    }
    CHECK(counted == 200);
}

TEST_CASE("threads that must be opened") {
    Coverage coverage;
    coverage.opened(10, 1'000);
    CHECK(coverage.known(10));
    // Its clone() may have begun before 1,000 …
    CHECK(coverage.forked(10, 11, 1'100));
    CHECK_FALSE(coverage.known(11));
    // … also when the record is repeated. The next clone() began later.
    CHECK(coverage.forked(10, 11, 1'100));
    CHECK_FALSE(coverage.forked(10, 12, 1'200));
    CHECK(coverage.known(12));
    // Children of a covered thread, and once more of an opened one.
    CHECK_FALSE(coverage.forked(12, 13, 1'250));
    CHECK_FALSE(coverage.forked(13, 14, 1'300));
    coverage.opened(11, 1'400);
    CHECK(coverage.forked(11, 15, 1'350));  // before its opening was complete
    CHECK(coverage.forked(11, 16, 1'500));
    CHECK_FALSE(coverage.forked(11, 17, 1'600));
    // An unknown parent.
    CHECK(coverage.forked(99, 20, 1'700));
    // A reused tid is another thread.
    coverage.exited(12);
    CHECK(coverage.forked(99, 12, 1'800));
    coverage.skipped(20);
    CHECK(coverage.known(20));
}

TEST_CASE("a chain of first children is followed for three generations") {
    Coverage coverage;
    coverage.opened(10, 1'000);
    CHECK(coverage.forked(10, 11, 1'100));
    coverage.opened(11, 1'200);
    CHECK(coverage.forked(11, 12, 1'300));  // 12 ends before it is opened, so its child takes its place
    CHECK(coverage.forked(12, 13, 1'310));
    coverage.opened(13, 1'400);
    CHECK_FALSE(coverage.forked(13, 14, 1'500));
    CHECK(coverage.known(14));
    CHECK_FALSE(coverage.forked(14, 15, 1'600));
}

TEST_CASE("copies of process records are detected by their ids") {
    SidebandCopies copies;
    const auto fork = [&](std::uint32_t child, std::uint64_t id) {
        return copies.is_copy(TaskRecord{false, 1, 1, child, 10, 5}, id);
    };
    CHECK_FALSE(fork(50, 1));
    CHECK(fork(50, 2));
    CHECK(fork(50, 3));
    CHECK_FALSE(fork(51, 1));
    CHECK(fork(51, 2));
    // The same event happens again: its copies start with the same set.
    const CommRecord name{1, 10, 5, false, "a"};
    CHECK_FALSE(copies.is_copy(name, 1));
    CHECK(copies.is_copy(name, 2));
    CHECK_FALSE(copies.is_copy(name, 1));
    CHECK(copies.is_copy(name, 2));
    // An exec is not a change of name. Another mapping is another record.
    CHECK_FALSE(copies.is_copy(CommRecord{1, 10, 5, true, "a"}, 2));
    MmapRecord map;
    map.pid = 1;
    map.tid = 10;
    map.start = 0x1000;
    CHECK_FALSE(copies.is_copy(map, 1));
    map.start = 0x2000;
    CHECK_FALSE(copies.is_copy(map, 2));
}
