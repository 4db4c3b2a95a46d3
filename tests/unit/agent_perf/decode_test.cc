#include "agent/perf/decode.h"

#include <catch2/catch.hpp>

#include "record_bytes.h"

using namespace flamewire;
using namespace flamewire::agent;

namespace {

template <class T>
T decoded(const std::vector<std::uint64_t>& words, perf::Origin& origin, const SampleLayout& layout = {}) {
    Record record;
    REQUIRE(decode_record(agent::as_bytes(words), layout, record, origin) == perf::Decoded::ok);
    REQUIRE(std::holds_alternative<T>(record));
    return std::get<T>(record);
}

perf::Decoded answer(Bytes bytes, const SampleLayout& layout = {}) {
    Record record;
    perf::Origin origin;
    return decode_record(bytes, layout, record, origin);
}

template <class T>
std::vector<T> list(std::span<const T> values) {
    return {values.begin(), values.end()};
}

// Registers 7 and 8, which is two words, and 32 bytes of stack.
constexpr SampleLayout with_stack{wire::StackMode::dwarf, false, 0x180, 32};

}  // namespace

TEST_CASE("a sample") {
    const std::vector<std::uint64_t> chain{0xffff'ffff'ffff'fe00, 0x401000, 0x402000};
    const auto words = sample_bytes(77, 5'000, chain).words();
    perf::Origin origin;
    const auto sample = decoded<SampleRecord>(words, origin);
    CHECK(sample.id == 77);
    CHECK(sample.ip == 0x401000);
    CHECK(sample.pid == 100);
    CHECK(sample.tid == 101);
    CHECK(sample.time_ns == 5'000);
    CHECK(sample.cpu == 3);
    CHECK(sample.period == 1'001'001);
    CHECK(sample.user_mode());
    CHECK(std::vector(sample.callchain.begin(), sample.callchain.end()) == chain);
    CHECK(origin.id == 77);
    CHECK(record_time(agent::as_bytes(words)) == 5'000);

    const auto kernel = sample_bytes(77, 5'000, {}, 1).words();
    CHECK_FALSE(decoded<SampleRecord>(kernel, origin).user_mode());
    // Padding after the chain is not a frame.
    const auto padded = sample_bytes(1, 2, {3}).u64(0).words();
    CHECK(decoded<SampleRecord>(padded, origin).callchain.size() == 1);
}

TEST_CASE("a sample of a fixed period does not contain it") {
    RecordBytes bytes(9, 2);
    bytes.u64(77).u64(0x401000).u32(100).u32(101).u64(5000).u32(3).u32(0).u64(1).u64(0x401000);
    Record record;
    perf::Origin origin;
    const auto words = bytes.words();
    REQUIRE(decode_record(agent::as_bytes(words), {.fixed_period = 250}, record, origin) == perf::Decoded::ok);
    const auto& sample = std::get<SampleRecord>(record);
    CHECK(sample.period == 250);
    REQUIRE(sample.callchain.size() == 1);
    CHECK(sample.callchain[0] == 0x401000);
}

TEST_CASE("switch records contain the thread that left, and whether it was still runnable") {
    Record record;
    perf::Origin origin;
    for (const std::uint32_t type : {14U, 15U})
        for (const unsigned misc : {0U, 1U << 13, 3U << 13}) {
            RecordBytes bytes(type, static_cast<std::uint16_t>(misc));
            if (type == 15) bytes.u32(200).u32(201);
            const auto words = bytes.trailer(100, 101, 5000, 3, 77).words();
            REQUIRE(decode_record(agent::as_bytes(words), {}, record, origin) == perf::Decoded::ok);
            const auto& change = std::get<SwitchRecord>(record);
            CHECK((change.tid == 101 && change.time_ns == 5000 && origin.id == 77));
            CHECK(change.out == (misc != 0));
            CHECK(change.preempted == (misc == 3U << 13));
        }
}

// struct perf_record_ksymbol: addr, len, type and flags (two halves of a word), name.
TEST_CASE("loading and unloading of BPF programs; other kernel code is left out") {
    for (const std::uint32_t flags : {0U, 1U}) {
        const auto words = RecordBytes(17, 0)
                               .u64(0xffff'ffff'c000'1234)
                               .u32(0x180)
                               .u32(1U | flags << 16)
                               .text("bpf_prog_0123456789abcdef_hot")
                               .trailer(100, 101, 5000, 3, 77)
                               .words();
        Record record;
        perf::Origin origin;
        REQUIRE(decode_record(agent::as_bytes(words), {}, record, origin) == perf::Decoded::ok);
        const auto& symbol = std::get<KsymbolRecord>(record);
        CHECK((symbol.address == 0xffff'ffff'c000'1234 && symbol.size == 0x180 && symbol.time_ns == 5000));
        CHECK(symbol.gone == (flags != 0));
        CHECK(symbol.name == "bpf_prog_0123456789abcdef_hot");
    }
    // PERF_RECORD_KSYMBOL_TYPE_OOL: a trampoline.
    const auto other = RecordBytes(17, 0).u64(1).u32(2).u32(2).text("page").trailer(1, 1, 1, 1, 1).words();
    Record record;
    perf::Origin origin;
    CHECK(decode_record(agent::as_bytes(other), {}, record, origin) == perf::Decoded::skipped);
    const auto cut = RecordBytes(17, 0).u64(1).trailer(1, 1, 1, 1, 1).words();
    CHECK(decode_record(agent::as_bytes(cut), {}, record, origin) == perf::Decoded::malformed);
}

TEST_CASE("a KSYMBOL record whose reserved size is larger than the written bytes") {
    const std::uint64_t unwritten = 0x5555'5555'5555'5555;
    for (int events_before = 0; events_before < 4; ++events_before) {
        RecordBytes bytes(17, 0);
        bytes.u64(0xffff'ffff'c000'1234).u32(0x180).u32(1U).text("bpf_prog_0123456789abcdef_cold12");
        bytes.trailer(100, 101, 5000, 3, 77);
        for (int word = 0; word < 4 * events_before; ++word) bytes.u64(unwritten);
        const auto words = bytes.words();
        Record record;
        perf::Origin origin;
        REQUIRE(decode_record(agent::as_bytes(words), {}, record, origin) == perf::Decoded::ok);
        const auto& symbol = std::get<KsymbolRecord>(record);
        CHECK((symbol.time_ns == 5000 && origin.id == 77 && origin.tid == 101));
        CHECK(record_time(agent::as_bytes(words)) == 5000);
        CHECK(symbol.name == "bpf_prog_0123456789abcdef_cold12");
    }
}

TEST_CASE("registers and stack bytes") {
    // abi 2 (64 bits), sp, ip; size 32, the bytes, dyn_size 24. The last word is left over from earlier data of the
    // ring.
    const auto words = sample_bytes(7, 1, {0xffff'ffff'ffff'ff80, 0xffff'ffff'8100'0000})
                           .u64(2)
                           .u64(0x7ffc'0000)
                           .u64(0x401234)
                           .u64(32)
                           .u64(11)
                           .u64(12)
                           .u64(13)
                           .u64(0xdead)
                           .u64(24)
                           .words();
    perf::Origin origin;
    const auto sample = decoded<SampleRecord>(words, origin, with_stack);
    CHECK(sample.mode == wire::StackMode::dwarf);
    CHECK(sample.callchain.size() == 2);
    CHECK((sample.register_abi == 2 && sample.register_mask == 0x180));
    CHECK(list(sample.registers) == std::vector<std::uint64_t>{0x7ffc'0000, 0x401234});
    REQUIRE(sample.stack.size() == 24);
    CHECK(std::memcmp(sample.stack.data(), &words[14], 24) == 0);
    CHECK(words[14] == 11);
    CHECK_FALSE(sample.stack_cut);
    CHECK(sample.stack_missing == 8);
    CHECK(sample.branches.empty());
    CHECK(sample_id(agent::as_bytes(words)) == 7);

    // The copy is full: the stack continues.
    auto full = words;
    full[18] = 32;
    CHECK(decoded<SampleRecord>(full, origin, with_stack).stack.size() == 32);
    CHECK(decoded<SampleRecord>(full, origin, with_stack).stack_cut);
    CHECK(decoded<SampleRecord>(full, origin, with_stack).stack_missing == 0);
    // Nothing could be copied.
    full[18] = 0;
    CHECK(decoded<SampleRecord>(full, origin, with_stack).stack.empty());
    CHECK_FALSE(decoded<SampleRecord>(full, origin, with_stack).stack_cut);
    CHECK(decoded<SampleRecord>(full, origin, with_stack).stack_missing == 32);
    // More bytes copied than reserved.
    for (const std::uint64_t copied : {33ULL, 40ULL, ~0ULL}) {
        full[18] = copied;
        CHECK(answer(agent::as_bytes(full), with_stack) == perf::Decoded::malformed);
    }
    // A larger size than the record has.
    for (const std::uint64_t size : {40ULL, 1ULL << 63, ~0ULL, ~0ULL - 7}) {
        auto wrong = words;
        wrong[13] = size;
        CHECK(answer(agent::as_bytes(wrong), with_stack) == perf::Decoded::malformed);
    }
    // Truncated at any word.
    for (std::size_t count = 0; count < words.size(); ++count) {
        auto shorter = words;
        shorter.resize(count);
        if (count > 0) {
            const auto size = static_cast<std::uint16_t>(count * 8);
            std::memcpy(static_cast<char*>(static_cast<void*>(shorter.data())) + 6, &size, sizeof size);
        }
        CHECK(answer(agent::as_bytes(shorter), with_stack) == perf::Decoded::malformed);
    }
}

TEST_CASE("samples without registers or without space for a stack") {
    perf::Origin origin;
    // A kernel thread: abi 0 and no registers; size 0 and no dyn_size.
    const auto none = sample_bytes(7, 1).u64(0).u64(0).words();
    const auto sample = decoded<SampleRecord>(none, origin, with_stack);
    CHECK((sample.register_abi == 0 && sample.register_mask == 0 && sample.registers.empty()));
    CHECK((sample.stack.empty() && !sample.stack_cut && sample.stack_missing == 0));
    // The kernel reserved less than requested, and filled it.
    const auto little = sample_bytes(7, 1).u64(1).u64(5).u64(6).u64(8).u64(99).u64(8).words();
    const auto reduced = decoded<SampleRecord>(little, origin, with_stack);
    CHECK(reduced.register_abi == 1);
    CHECK((reduced.stack.size() == 8 && reduced.stack_cut));
    // The stack ended at the end of user space, in the middle of a word: 12 bytes, then dyn_size.
    const auto ends = sample_bytes(7, 1).u64(1).u64(5).u64(6).u64(12).u64(99).u32(98).u64(12).words();
    const auto short_stack = decoded<SampleRecord>(ends, origin, with_stack);
    CHECK(short_stack.stack.size() == 12);
    CHECK(std::memcmp(short_stack.stack.data(), &ends[12], 12) == 0);
    // Padding after the last field.
    const auto padded = sample_bytes(7, 1).u64(1).u64(5).u64(6).u64(8).u64(99).u64(8).u64(0).u64(0).words();
    CHECK(decoded<SampleRecord>(padded, origin, with_stack).stack.size() == 8);
    // Only registers: words after them are ignored.
    const SampleLayout pointer{wire::StackMode::fp, false, 0x180, 0};
    const auto two = sample_bytes(7, 1, {1}).u64(2).u64(5).u64(6).u64(~0ULL).words();
    const auto fp = decoded<SampleRecord>(two, origin, pointer);
    CHECK(fp.mode == wire::StackMode::fp);
    CHECK(list(fp.registers) == std::vector<std::uint64_t>{5, 6});
    CHECK(fp.stack.empty());
}

TEST_CASE("branch records are between chain and registers") {
    const SampleLayout layout{wire::StackMode::lbr, true, 0x100, 0};
    RecordBytes record = sample_bytes(7, 1, {0xabc});
    record.u64(2).u64(0x1000).u64(0x2000).u64(1).u64(0x3000).u64(0x4000).u64(0).u64(2).u64(0x55);
    const auto words = record.words();
    perf::Origin origin;
    const auto sample = decoded<SampleRecord>(words, origin, layout);
    CHECK(sample.mode == wire::StackMode::lbr);
    REQUIRE(sample.branches.size() == 2);
    CHECK((sample.branches[0].from == 0x1000 && sample.branches[0].to == 0x2000 && sample.branches[0].flags == 1));
    CHECK((sample.branches[1].from == 0x3000 && sample.branches[1].to == 0x4000));
    CHECK(list(sample.registers) == std::vector<std::uint64_t>{0x55});
    CHECK(list(sample.callchain) == std::vector<std::uint64_t>{0xabc});
    const auto empty = sample_bytes(7, 1).u64(0).u64(0).words();
    CHECK(decoded<SampleRecord>(empty, origin, layout).branches.empty());
    // More records than bytes, also if the product overflows.
    for (const std::uint64_t count : {4ULL, 1ULL << 61, ~0ULL / 24 + 1, ~0ULL}) {
        auto wrong = words;
        wrong[9] = count;
        CHECK(answer(agent::as_bytes(wrong), layout) == perf::Decoded::malformed);
    }
}

TEST_CASE("a wakeup sample contains the woken thread, between chain and registers") {
    // struct trace_event_raw_sched_wakeup_template: type, flags, preempt_count, pid; comm[16], pid, prio, target_cpu.
    const auto waking = [](std::uint8_t flags, std::uint32_t raw_size = 36) {
        RecordBytes record = sample_bytes(7, 1, {0xabc});
        record.u32(raw_size).u16(0x172).u16(flags).u32(101).u64(0).u64(0).u32(4242).u32(120).u32(1);
        return record.u64(2).u64(0x55);
    };
    SampleLayout layout;
    layout.woken_at = 24;
    layout.register_mask = 1;
    perf::Origin origin;
    const auto words = waking(0x02).words();
    const auto sample = decoded<SampleRecord>(words, origin, layout);
    CHECK(sample.woken_tid == 4242);
    CHECK_FALSE(sample.by_interrupt);
    CHECK(list(sample.callchain) == std::vector<std::uint64_t>{0xabc});
    CHECK(list(sample.registers) == std::vector<std::uint64_t>{0x55});
    for (const std::uint8_t flags : {0x08, 0x10, 0x1a}) {
        const auto interrupt = waking(flags).words();
        CHECK(decoded<SampleRecord>(interrupt, origin, layout).by_interrupt);
    }
    // Too short for the field, not whole words, and longer than the record.
    for (const std::uint32_t size : {20U, 35U, 1'000U, 0xffff'fffcU}) {
        const auto wrong = waking(0, size).words();
        CHECK(answer(agent::as_bytes(wrong), layout) == perf::Decoded::malformed);
    }
    for (std::size_t count = 0; count < words.size(); ++count) {
        auto shorter = words;
        shorter.resize(count);
        if (count > 0) shorter[0] = (shorter[0] & 0x0000'ffff'ffff'ffff) | count << 51;
        CHECK(answer(agent::as_bytes(shorter), layout) == perf::Decoded::malformed);
    }
}

TEST_CASE("the id of a sample") {
    CHECK(sample_id({}) == 0);
    const auto words = sample_bytes(77, 1).words();
    CHECK(sample_id(agent::as_bytes(words)) == 77);
    CHECK(sample_id(agent::as_bytes(words).first(16)) == 77);
    CHECK(sample_id(agent::as_bytes(words).first(15)) == 0);
    const auto task = task_bytes(false, 1, 2, 3, 4).words();
    CHECK(sample_id(agent::as_bytes(task)) == 0);
}

TEST_CASE("maps, with inode and with build-id") {
    perf::Origin origin;
    RecordBytes inode(10, 2);
    inode.u32(10).u32(11).u64(0x7f0000000000).u64(0x3000).u64(0x1000).u32(8).u32(1).u64(4242).u64(6);
    inode.u32(5).u32(2).text("/usr/lib/libc.so.6").trailer(10, 11, 900, 1, 55);
    const auto words = inode.words();
    const auto map = decoded<MmapRecord>(words, origin);
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
    const auto id_map = decoded<MmapRecord>(id_words, origin);
    CHECK(as_text(id_map.build_id) == "aaaabbbbccccddddeeee");
    CHECK(id_map.inode == 0);
    CHECK(id_map.path == "//anon");

    // A length byte larger than the field is limited to it.
    RecordBytes too_long(10, 1U << 14);
    too_long.u32(1)
        .u32(1)
        .u64(1)
        .u64(2)
        .u64(3)
        .raw("\xff\0\0\0aaaabbbbccccddddeeee", 24)
        .u32(5)
        .u32(2)
        .text("x")
        .trailer(1, 1, 1, 1, 1);
    const auto too_long_words = too_long.words();
    CHECK(decoded<MmapRecord>(too_long_words, origin).build_id.size() == 20);
}

TEST_CASE("comm, fork, exit, lost, throttle") {
    perf::Origin origin;
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
    CHECK((!throttle.unthrottle && throttle.time_ns == 71 && throttle.id == 31));
    const auto unthrottle_words = RecordBytes(6, 0).u64(70).u64(31).u64(32).trailer(1, 2, 71, 6, 31).words();
    CHECK(decoded<ThrottleRecord>(unthrottle_words, origin).unthrottle);
}

TEST_CASE("bytes that are not records") {
    CHECK(answer({}) == perf::Decoded::malformed);
    const auto good = sample_bytes(1, 2, {3, 4}).words();
    for (std::size_t size = 0; size < good.size() * 8; ++size)
        CHECK(answer(agent::as_bytes(good).first(size)) == perf::Decoded::malformed);
    // More frames than bytes, also if the product overflows.
    for (const std::uint64_t count : {3ULL, 1ULL << 61, ~0ULL}) {
        auto words = good;
        words[7] = count;
        CHECK(answer(agent::as_bytes(words)) == perf::Decoded::malformed);
    }
    // Each type, shorter than its fields, with and without space for the trailer.
    for (std::uint32_t type = 1; type < 24; ++type)
        for (std::size_t extra = 0; extra < 5; ++extra) {
            RecordBytes record(type, 0);
            for (std::size_t i = 0; i < extra; ++i) record.u64(0x4141'4141'4141'4141);
            const auto words = record.words();
            // A switch record of one thread has no additional fields.
            const bool whole = type == 14 && extra == 4;
            CHECK((answer(agent::as_bytes(words)) == perf::Decoded::ok) == whole);
        }
    const auto unknown = RecordBytes(16, 0).trailer(1, 2, 3, 4, 5).words();
    CHECK(answer(agent::as_bytes(unknown)) == perf::Decoded::skipped);
    // The agent does not request deferred call chains.
    const auto deferred = RecordBytes(22, 2).u64(7).u64(1).u64(0x401000).trailer(1, 2, 3, 4, 5).words();
    CHECK(answer(agent::as_bytes(deferred)) == perf::Decoded::skipped);
    // Not at an 8-byte boundary.
    std::vector<std::uint64_t> shifted(good.size() + 1);
    std::memcpy(static_cast<char*>(static_cast<void*>(shifted.data())) + 4, good.data(), good.size() * 8);
    CHECK(answer(agent::as_bytes(shifted).subspan(4, good.size() * 8)) == perf::Decoded::malformed);
}
