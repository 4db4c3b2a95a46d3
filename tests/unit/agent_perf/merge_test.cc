#include "agent/perf/merge.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <random>

#include "agent/perf/decode.h"
#include "record_bytes.h"

using namespace flamewire;
using namespace flamewire::agent;

namespace {

// A ring of 4,096 bytes that a test writes like the kernel does.
struct TestRing {
    std::vector<std::uint64_t> data = std::vector<std::uint64_t>(512);
    std::uint64_t head = 0;

    void write(const std::vector<std::uint64_t>& words) {
        for (const std::uint64_t word : words) {
            data[(head / 8) % data.size()] = word;
            head += 8;
        }
    }
    void write_bytes(std::span<const std::byte> bytes) {
        for (const std::byte byte : bytes)
            static_cast<std::byte*>(static_cast<void*>(data.data()))[head++ % (8 * data.size())] = byte;
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
    // What was held back comes in the next round, with what arrived since.
    c.sample(55);
    cursors[2].head = c.head;
    CHECK(run(merge, cursors, release_everything) == std::vector<Out>{{50, 0, false}, {55, 2, false}, {60, 1, false}});
    for (std::size_t ring = 0; ring < 2; ++ring) CHECK(cursors[ring].tail == cursors[ring].head);
    CHECK(run(merge, cursors, release_everything).empty());
}

TEST_CASE("a record older than what was handed out is clamped and counted as late") {
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

TEST_CASE("records that wrap are put together, others are not copied") {
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
        RecordOrigin origin;
        REQUIRE(decode_record(record.bytes, {}, decoded, origin) == Decoded::ok);
        const auto& sample = std::get<SampleRecord>(decoded);
        REQUIRE(sample.time_ns == time);
        REQUIRE(sample.callchain.size() == time % 40);
        REQUIRE(std::all_of(sample.callchain.begin(), sample.callchain.end(), [&](auto ip) { return ip == time; }));
        const auto* begin = agent::as_bytes(ring.data).data();
        const bool inside = record.bytes.data() >= begin && record.bytes.data() < begin + 4096;
        (inside ? whole : wrapped) += 1;
        REQUIRE_FALSE(merge.next(record));
    }
    // 500 records of 64 + 8 * (0..39) bytes are 108 kB: 26 times around 4 KiB, nearly each with a record across the
    // end.
    CHECK(wrapped >= 20);
    CHECK(wrapped <= 27);
    CHECK(whole == 500 - wrapped);
}

TEST_CASE("a copy of a stack that ends between words leaves what follows askew, and readable") {
    // The stack of a 32-bit process next to the end of its address space: 0 to 60 bytes, multiples of 4.
    const SampleLayout layout{.mode = wire::StackMode::dwarf, .register_mask = 1, .stack_bytes = 64};
    TestRing ring;
    std::vector<RingCursor> cursors{ring.cursor()};
    Merge merge;
    MergedRecord record;
    for (std::uint64_t time = 1; time <= 1000; ++time) {
        const std::size_t stack_bytes = time * 4 % 64;
        RecordBytes bytes = sample_bytes(1, time, {0x401000});
        bytes.u64(1).u64(0x1234).u64(stack_bytes);  // the ABI of 32 bits, the only register, room
        for (std::size_t i = 0; i < stack_bytes; ++i) bytes.raw("s", 1);
        if (stack_bytes != 0) bytes.u64(stack_bytes);
        std::vector<char> raw = bytes.bytes();
        const auto size = static_cast<std::uint16_t>(raw.size());
        std::memcpy(raw.data() + 6, &size, sizeof size);
        ring.write_bytes(std::as_bytes(std::span(raw)));
        cursors[0].head = ring.head;
        merge.begin(cursors, release_everything);
        REQUIRE(merge.next(record));
        Record decoded;
        RecordOrigin origin;
        REQUIRE(decode_record(record.bytes, layout, decoded, origin) == Decoded::ok);
        const auto& sample = std::get<SampleRecord>(decoded);
        REQUIRE(sample.time_ns == time);
        REQUIRE(sample.stack.size() == stack_bytes);
        REQUIRE(std::all_of(sample.stack.begin(), sample.stack.end(),
                            [](std::byte byte) { return byte == std::byte{'s'}; }));
        REQUIRE_FALSE(merge.next(record));
    }
    CHECK(cursors[0].broken == 0);
}

TEST_CASE("sixteen rings against the order of writing") {
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

TEST_CASE("a broken ring is skipped, once, and the others go on") {
    TestRing broken, good;
    broken.write({~0ULL, ~0ULL});
    good.sample(5);
    std::vector<RingCursor> cursors{broken.cursor(), good.cursor()};
    Merge merge;
    CHECK(run(merge, cursors, release_everything) == std::vector<Out>{{5, 1, false}});
    CHECK(cursors[0].broken == 1);
    CHECK(cursors[0].tail == cursors[0].head);
    // Sizes of zero, less than a header, and more than is there.
    for (const std::uint16_t size : {0, 4, 4088}) {
        TestRing ring;
        ring.write({std::uint64_t{size} << 48 | 9, 0});
        std::vector<RingCursor> one{ring.cursor()};
        CHECK(run(merge, one, release_everything).empty());
        CHECK(one[0].broken == 1);
    }
}
