#include "agent/perf/decode.h"

#include <catch2/catch.hpp>

#include "record_bytes.h"

using namespace flamewire;
using namespace flamewire::agent;

namespace {

template <class T>
T decoded(const std::vector<std::uint64_t>& words, RecordOrigin& origin) {
    Record record;
    REQUIRE(decode_record(agent::as_bytes(words), record, origin) == Decoded::ok);
    REQUIRE(std::holds_alternative<T>(record));
    return std::get<T>(record);
}

Decoded answer(Bytes bytes) {
    Record record;
    RecordOrigin origin;
    return decode_record(bytes, record, origin);
}

}  // namespace

TEST_CASE("a sample") {
    const std::vector<std::uint64_t> chain{0xffff'ffff'ffff'fe00, 0x401000, 0x402000};
    const auto words = sample_bytes(77, 5'000, chain).words();
    RecordOrigin origin;
    const auto sample = decoded<SampleRecord>(words, origin);
    CHECK(sample.id == 77);
    CHECK(sample.ip == 0x401000);
    CHECK(sample.pid == 100);
    CHECK(sample.tid == 101);
    CHECK(sample.time_ns == 5'000);
    CHECK(sample.cpu == 3);
    CHECK(sample.period == 1'001'001);
    CHECK(sample.user_mode);
    CHECK(std::vector(sample.callchain.begin(), sample.callchain.end()) == chain);
    CHECK(origin.id == 77);
    CHECK(record_time(agent::as_bytes(words)) == 5'000);

    const auto kernel = sample_bytes(77, 5'000, {}, 1).words();
    CHECK_FALSE(decoded<SampleRecord>(kernel, origin).user_mode);
    // Padding behind the chain is no frame.
    const auto padded = sample_bytes(1, 2, {3}).u64(0).words();
    CHECK(decoded<SampleRecord>(padded, origin).callchain.size() == 1);
}

TEST_CASE("maps, with inode and with build-id") {
    RecordOrigin origin;
    RecordBytes inode(10, 2);
    inode.u32(10).u32(11).u64(0x7f0000000000).u64(0x3000).u64(0x1000).u32(8).u32(1).u64(4242).u64(6);
    inode.u32(5).u32(2).text("/usr/lib/libc.so.6").trailer(10, 11, 900, 1, 55);
    const auto words = inode.words();
    const auto map = decoded<Mmap2Record>(words, origin);
    CHECK((map.pid == 10 && map.tid == 11 && map.time_ns == 900));
    CHECK((map.start == 0x7f0000000000 && map.length == 0x3000 && map.page_offset == 0x1000));
    CHECK((map.device_major == 8 && map.device_minor == 1 && map.inode == 4242 && map.inode_generation == 6));
    CHECK((map.protection == 5 && map.flags == 2));
    CHECK(map.path == "/usr/lib/libc.so.6");
    CHECK(map.build_id.empty());
    CHECK((origin.id == 55 && origin.tid == 11 && origin.cpu == 1));

    RecordBytes with_id(10, (1U << 14) | 2U);
    const char build_id[25] = "\x14\0\0\0aaaabbbbccccddddeeee";
    with_id.u32(10)
        .u32(11)
        .u64(1)
        .u64(2)
        .u64(3)
        .raw(build_id, 24)
        .u32(5)
        .u32(2)
        .text("//anon")
        .trailer(10, 11, 900, 1, 55);
    const auto id_words = with_id.words();
    const auto id_map = decoded<Mmap2Record>(id_words, origin);
    CHECK(as_text(id_map.build_id) == "aaaabbbbccccddddeeee");
    CHECK(id_map.inode == 0);
    CHECK(id_map.path == "//anon");

    // A length byte beyond the field is cut to it.
    RecordBytes liar(10, 1U << 14);
    liar.u32(1)
        .u32(1)
        .u64(1)
        .u64(2)
        .u64(3)
        .raw("\xff\0\0\0aaaabbbbccccddddeeee", 24)
        .u32(5)
        .u32(2)
        .text("x")
        .trailer(1, 1, 1, 1, 1);
    const auto liar_words = liar.words();
    CHECK(decoded<Mmap2Record>(liar_words, origin).build_id.size() == 20);
}

TEST_CASE("comm, fork, exit, lost, throttle") {
    RecordOrigin origin;
    const auto exec_words = RecordBytes(3, 1U << 13).u32(20).u32(21).text("cc1plus").trailer(20, 21, 7, 0, 9).words();
    const auto exec = decoded<CommRecord>(exec_words, origin);
    CHECK((exec.pid == 20 && exec.tid == 21 && exec.exec && exec.comm == "cc1plus" && exec.time_ns == 7));
    const auto comm_words = RecordBytes(3, 0).u32(20).u32(21).text("worker").trailer(20, 21, 8, 0, 9).words();
    CHECK_FALSE(decoded<CommRecord>(comm_words, origin).exec);

    const auto fork_words = task_bytes(false, 201, 101, 44, 5).words();
    const auto fork = decoded<TaskRecord>(fork_words, origin);
    CHECK((!fork.exit && fork.pid == 100 && fork.parent_pid == 100 && fork.tid == 201 && fork.parent_tid == 101));
    CHECK(fork.time_ns == 44);
    const auto exit_words = task_bytes(true, 201, 101, 45, 5).words();
    CHECK(decoded<TaskRecord>(exit_words, origin).exit);

    const auto lost_words = RecordBytes(2, 0).u64(31).u64(4'000).trailer(1, 2, 99, 6, 31).words();
    const auto lost = decoded<LostRecord>(lost_words, origin);
    CHECK((lost.id == 31 && lost.count == 4'000 && lost.time_ns == 99 && lost.cpu == 6));
    const auto samples_words = RecordBytes(13, 0).u64(12).trailer(1, 2, 99, 6, 31).words();
    CHECK(decoded<LostRecord>(samples_words, origin).count == 12);

    const auto throttle_words = RecordBytes(5, 0).u64(70).u64(31).u64(32).trailer(1, 2, 71, 6, 31).words();
    const auto throttle = decoded<ThrottleRecord>(throttle_words, origin);
    CHECK((!throttle.unthrottle && throttle.time_ns == 70 && throttle.id == 31));
    const auto unthrottle_words = RecordBytes(6, 0).u64(70).u64(31).u64(32).trailer(1, 2, 71, 6, 31).words();
    CHECK(decoded<ThrottleRecord>(unthrottle_words, origin).unthrottle);
}

TEST_CASE("bytes that are no records") {
    CHECK(answer({}) == Decoded::malformed);
    const auto good = sample_bytes(1, 2, {3, 4}).words();
    for (std::size_t size = 0; size < good.size() * 8; ++size)
        CHECK(answer(agent::as_bytes(good).first(size)) == Decoded::malformed);
    // More frames than bytes, also where the product overflows.
    for (const std::uint64_t count : {3ULL, 1ULL << 61, ~0ULL}) {
        auto words = good;
        words[7] = count;
        CHECK(answer(agent::as_bytes(words)) == Decoded::malformed);
    }
    // Each type, shorter than its fields, with and without room for the trailer.
    for (std::uint32_t type = 1; type < 24; ++type)
        for (std::size_t extra = 0; extra < 5; ++extra) {
            RecordBytes record(type, 0);
            for (std::size_t i = 0; i < extra; ++i) record.u64(0x4141'4141'4141'4141);
            const auto words = record.words();
            CHECK(answer(agent::as_bytes(words)) != Decoded::ok);
        }
    const auto unknown = RecordBytes(14, 0).trailer(1, 2, 3, 4, 5).words();
    CHECK(answer(agent::as_bytes(unknown)) == Decoded::skipped);
    // Not at an 8-byte boundary.
    std::vector<std::uint64_t> shifted(good.size() + 1);
    std::memcpy(static_cast<char*>(static_cast<void*>(shifted.data())) + 4, good.data(), good.size() * 8);
    CHECK(answer(agent::as_bytes(shifted).subspan(4, good.size() * 8)) == Decoded::malformed);
}
