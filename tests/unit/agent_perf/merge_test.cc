#include "agent/perf/merge.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <random>

#include "agent/perf/decode.h"
#include "record_bytes.h"

using namespace flamewire;
using namespace flamewire::agent;

namespace {

// A ring of 4,096 bytes, written as the kernel writes it.
struct TestRing {
    std::vector<std::uint64_t> data = std::vector<std::uint64_t>(512);
    std::uint64_t head = 0;

    void write(const std::vector<std::uint64_t>& words) {
        for (const std::uint64_t word : words) {
            data[(head / 8) % data.size()] = word;
            head += 8;
        }
    }
    void sample(std::uint64_t time, std::size_t frames = 0) {
        write(sample_bytes(1, time, std::vector<std::uint64_t>(frames, time)).words());
    }
    [[nodiscard]] RingCursor cursor() const {
        RingCursor cursor(agent::as_bytes(data).data(), data.size() * 8);
        cursor.head = head;
        return cursor;
    }
};

struct Out {
    std::uint64_t time;
    std::size_t ring;
    bool late;
    bool operator==(const Out&) const = default;
};

std::vector<Out> run(Merge& merge, std::vector<RingCursor>& cursors, std::uint64_t limit) {
    std::vector<Out> all;
    MergedRecord record;
    merge.begin(cursors, limit);
    while (merge.next(record)) all.push_back({record.time_ns, record.ring, record.late});
    return all;
}

}  // namespace

TEST_CASE("records of several rings come in time order, up to the limit") {
    TestRing a, b, c;
    for (const std::uint64_t time : {10, 40, 50}) a.sample(time);
    for (const std::uint64_t time : {20, 30, 60}) b.sample(time);
    std::vector<RingCursor> cursors{a.cursor(), b.cursor(), c.cursor()};
    Merge merge;
    CHECK(run(merge, cursors, 45) == std::vector<Out>{{10, 0, false}, {20, 1, false}, {30, 1, false}, {40, 0, false}});
    // Records that were held back are released in the next round, together with new ones.
    c.sample(55);
    cursors[2].head = c.head;
    CHECK(run(merge, cursors, release_everything) == std::vector<Out>{{50, 0, false}, {55, 2, false}, {60, 1, false}});
    for (std::size_t ring = 0; ring < 2; ++ring) CHECK(cursors[ring].tail == cursors[ring].head);
    CHECK(run(merge, cursors, release_everything).empty());
}

TEST_CASE("a record older than the last released one is clamped and counted as late") {
    TestRing a, b;
    a.sample(100);
    std::vector<RingCursor> cursors{a.cursor(), b.cursor()};
    Merge merge;
    CHECK(run(merge, cursors, 100) == std::vector<Out>{{100, 0, false}});
    b.sample(90);
    b.sample(110);
    cursors[1].head = b.head;
    CHECK(run(merge, cursors, 200) == std::vector<Out>{{100, 1, true}, {110, 1, false}});
}

TEST_CASE("records that wrap are copied into one piece, others are not copied") {
    TestRing ring;
    std::vector<RingCursor> cursors{ring.cursor()};
    Merge merge;
    MergedRecord record;
    std::size_t wrapped = 0, whole = 0;
    for (std::uint64_t time = 1; time <= 500; ++time) {
        ring.sample(time, time % 40);
        cursors[0].head = ring.head;
        merge.begin(cursors, release_everything);
        REQUIRE(merge.next(record));
        Record decoded;
        perf::Origin origin;
        REQUIRE(decode_record(record.bytes, {}, decoded, origin) == perf::Decoded::ok);
        const auto& sample = std::get<SampleRecord>(decoded);
        REQUIRE(sample.time_ns == time);
        REQUIRE(sample.callchain.size() == time % 40);
        REQUIRE(std::all_of(sample.callchain.begin(), sample.callchain.end(), [&](auto ip) { return ip == time; }));
        const auto* begin = agent::as_bytes(ring.data).data();
        const bool inside = record.bytes.data() >= begin && record.bytes.data() < begin + 4096;
        (inside ? whole : wrapped) += 1;
        REQUIRE_FALSE(merge.next(record));
    }
    // 500 records of 64 + 8 * (0..39) bytes are 108 kB: 26 times around 4 KiB, nearly always with a record that crosses
    // the end.
    CHECK(wrapped >= 20);
    CHECK(wrapped <= 27);
    CHECK(whole == 500 - wrapped);
}

TEST_CASE("sixteen rings compared with the order of writing") {
    std::mt19937 random(7);
    Merge merge;
    std::vector<TestRing> rings(16);
    std::vector<RingCursor> cursors;
    for (const TestRing& ring : rings) cursors.push_back(ring.cursor());
    std::vector<std::uint64_t> written, read;
    std::uint64_t now = 1'000;
    for (int round = 0; round < 200; ++round) {
        for (int i = 0; i < 300; ++i) {
            now += random() % 3;
            TestRing& ring = rings[random() % rings.size()];
            const auto index = static_cast<std::size_t>(&ring - rings.data());
            if (ring.head + 64 - cursors[index].tail > 4096) continue;
            ring.sample(now);
            written.push_back(now);
        }
        for (std::size_t i = 0; i < rings.size(); ++i) cursors[i].head = rings[i].head;
        for (const Out& out : run(merge, cursors, round == 199 ? release_everything : now - 20)) {
            CHECK_FALSE(out.late);
            read.push_back(out.time);
        }
    }
    CHECK(written.size() > 10'000);
    CHECK(read == written);
}

TEST_CASE("records that are not whole words, at every position of the ring") {
    // Stack copies that end at the end of user space have 4 bytes more than whole words. A hostile program can cause
    // any number.
    const std::size_t odd = GENERATE(4, 1, 7);
    INFO(odd);
    std::vector<std::uint64_t> memory(512);
    auto* bytes = static_cast<unsigned char*>(static_cast<void*>(memory.data()));
    std::uint64_t head = 0;
    RingCursor cursor(agent::as_bytes(memory).data(), 4096);
    Merge merge;
    MergedRecord record;
    std::size_t unaligned = 0, split_headers = 0;
    for (std::uint64_t time = 1; time <= 3'000; ++time) {
        // A sample of 64 bytes, 8 of a chain, and `odd` more. The size is in bytes 6 and 7 of the header.
        const std::vector<std::uint64_t> words = sample_bytes(1, time, {time}).words();
        std::vector<unsigned char> one(words.size() * 8 + odd, static_cast<unsigned char>(time));
        std::memcpy(one.data(), words.data(), words.size() * 8);
        const auto size = static_cast<std::uint16_t>(one.size());
        std::memcpy(one.data() + 6, &size, sizeof size);
        unaligned += head % 8 != 0 ? 1 : 0;
        split_headers += head % 4096 > 4088 ? 1 : 0;
        for (const unsigned char byte : one) bytes[head++ % 4096] = byte;
        cursor.head = head;
        std::vector<RingCursor> cursors{cursor};
        merge.begin(cursors, release_everything);
        REQUIRE(merge.next(record));
        CHECK(record.time_ns == time);
        CHECK(reinterpret_cast<std::uintptr_t>(record.bytes.data()) % 8 == 0);
        REQUIRE(record.bytes.size() == one.size());
        CHECK(std::memcmp(record.bytes.data(), one.data(), one.size()) == 0);
        REQUIRE_FALSE(merge.next(record));
        CHECK(cursors[0].broken == 0);
        cursor = cursors[0];
    }
    CHECK(unaligned > 1'000);
    CHECK(split_headers > 0);
}

TEST_CASE("a broken ring is skipped, once, and the others continue") {
    TestRing broken, good;
    broken.write({~0ULL, ~0ULL});
    good.sample(5);
    std::vector<RingCursor> cursors{broken.cursor(), good.cursor()};
    Merge merge;
    CHECK(run(merge, cursors, release_everything) == std::vector<Out>{{5, 1, false}});
    CHECK(cursors[0].broken == 1);
    CHECK(cursors[0].tail == cursors[0].head);
    // Sizes of zero, less than a header, and more than is present.
    for (const std::uint16_t size : {0, 4, 7, 4088}) {
        TestRing ring;
        ring.write({std::uint64_t{size} << 48 | 9, 0});
        std::vector<RingCursor> one{ring.cursor()};
        CHECK(run(merge, one, release_everything).empty());
        CHECK(one[0].broken == 1);
    }
}
