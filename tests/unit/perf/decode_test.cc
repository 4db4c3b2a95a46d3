// Records with all fields, in both byte orders and at any memory alignment. agent_perf tests the agent's own fields.
#include "perf/decode.h"

#include <catch2/catch.hpp>

#include "perf/abi.h"
#include "record_body.h"

using namespace flamewire;
using namespace flamewire::perf;

namespace {

template <class T>
std::vector<T> list(std::span<const T> values) {
    return {values.begin(), values.end()};
}

// Every decoded field, in the order of the comment on enum perf_event_sample_format.
RecordFormat everything() {
    RecordFormat format;
    for (const std::uint64_t field :
         {sample::identifier, sample::ip, sample::tid, sample::time, sample::address, sample::id, sample::stream_id,
          sample::cpu, sample::period, sample::read, sample::callchain, sample::raw, sample::branch_stack,
          sample::regs_user, sample::stack_user})
        format.fields |= field;
    format.read_format = read_format::group | read_format::id | read_format::lost | read_format::time_enabled;
    format.branch_fields = branch::hardware_index | branch::counters;
    format.register_mask = 0x180;
    return format;
}

RecordBody sample_body(std::endian order) {
    RecordBody body(order);
    body.u64(70).u64(0x401000).u32(10).u32(11).u64(5'000).u64(0xadd4).u64(70).u64(71).u32(3).u32(0).u64(999);
    body.u64(2).u64(123).u64(1'000).u64(70).u64(4).u64(2'000).u64(71).u64(5);  // two counters of a group
    body.u64(2).u64(0xffff'ffff'ffff'fe00).u64(0x401000);                      // the call chain
    body.u32(4).u8('r').u8('a').u8('w').u8('!');
    body.u64(1).u64(0).u64(0x1000).u64(0x2000).u64(3).u64(0x77);  // hardware index, one branch, its counters
    body.u64(2).u64(0x7ffc'0000).u64(0x401234);                   // registers
    return body.u64(8).u64(0x0807'0605'0403'0201).u64(8);         // the stack
}

}  // namespace

TEST_CASE("a sample with every field") {
    for (const std::endian order : {std::endian::little, std::endian::big})
        for (const std::size_t shift : {0U, 1U, 4U}) {
            RecordBody body = sample_body(order);
            Decoder decoder(order);
            Sample sample;
            const RecordFormat format = everything();
            REQUIRE(decoder.sample(misc::user, body.bytes(shift), format, sample));
            CHECK((sample.id == 70 && sample.ip == 0x401000 && sample.pid == 10 && sample.tid == 11));
            CHECK((sample.time_ns == 5'000 && sample.cpu == 3 && sample.period == 999 && sample.user_mode()));
            CHECK(list(sample.callchain) == std::vector<std::uint64_t>{0xffff'ffff'ffff'fe00, 0x401000});
            CHECK(reinterpret_cast<std::uintptr_t>(sample.callchain.data()) % alignof(std::uint64_t) == 0);
            CHECK(as_text(sample.raw) == "raw!");
            REQUIRE(sample.branches.size() == 1);
            CHECK((sample.branches[0].from == 0x1000 && sample.branches[0].to == 0x2000));
            CHECK((sample.register_abi == 2 && sample.register_mask == 0x180));
            CHECK(list(sample.registers) == std::vector<std::uint64_t>{0x7ffc'0000, 0x401234});
            CHECK((sample.stack.size() == 8 && sample.stack_cut && sample.stack_missing == 0));
            // The stack's bytes stay unchanged.
            CHECK(std::to_integer<int>(sample.stack[0]) == (order == std::endian::little ? 1 : 8));
            std::vector<CounterValue> values;
            counter_values(sample, format, values);
            REQUIRE(values.size() == 2);
            CHECK((values[0].value == 1'000 && values[0].id == 70 && values[1].value == 2'000 && values[1].id == 71));
        }
}

TEST_CASE("a sample that is truncated anywhere is malformed") {
    for (const std::endian order : {std::endian::little, std::endian::big}) {
        RecordBody body = sample_body(order);
        const Bytes whole = body.bytes();
        Decoder decoder(order);
        Sample sample;
        for (std::size_t size = 0; size < whole.size(); ++size)
            CHECK_FALSE(decoder.sample(0, whole.first(size), everything(), sample));
    }
}

TEST_CASE("more counters than bytes") {
    RecordFormat format{.fields = sample::read, .read_format = read_format::group};
    Decoder decoder;
    Sample sample;
    for (const std::uint64_t count : {3ULL, 1ULL << 61, ~0ULL}) {
        RecordBody body(std::endian::native);
        body.u64(count).u64(1).u64(2);
        CHECK_FALSE(decoder.sample(0, body.bytes(), format, sample));
    }
    // Without any counter.
    std::vector<CounterValue> values{{1, 2}};
    RecordBody none(std::endian::native);
    CHECK(decoder.sample(0, none.u64(0).bytes(), format, sample));
    counter_values(sample, format, values);
    CHECK(values.empty());
}

TEST_CASE("the value of one counter") {
    const RecordFormat format{.fields = sample::read,
                              .read_format = read_format::id | read_format::time_enabled | read_format::time_running};
    RecordBody body(std::endian::native);
    Decoder decoder;
    Sample sample;
    REQUIRE(decoder.sample(0, body.u64(1'000).u64(1).u64(2).u64(70).bytes(), format, sample));
    std::vector<CounterValue> values;
    counter_values(sample, format, values);
    REQUIRE(values.size() == 1);
    CHECK((values[0].value == 1'000 && values[0].id == 70));
}

TEST_CASE("a sample has the period of its event unless it has its own") {
    Decoder decoder;
    Sample sample;
    RecordBody body(std::endian::native);
    REQUIRE(decoder.sample(0, body.u64(0x401000).bytes(), {.fields = sample::ip, .period = 250}, sample));
    CHECK((sample.period == 250 && sample.ip == 0x401000 && sample.callchain.empty()));
}

TEST_CASE("a decoder keeps nothing from the previous sample") {
    Decoder decoder;
    Sample sample;
    RecordBody first = sample_body(std::endian::native);
    REQUIRE(decoder.sample(misc::user, first.bytes(), everything(), sample));
    REQUIRE(decoder.sample(0, {}, {}, sample));
    CHECK((sample.id == 0 && sample.ip == 0 && sample.pid == 0 && sample.tid == 0 && sample.time_ns == 0));
    CHECK((sample.cpu == 0 && sample.period == 1 && sample.register_abi == 0 && sample.register_mask == 0));
    CHECK((sample.counters.empty() && sample.callchain.empty() && sample.raw.empty() && sample.branches.empty()));
    CHECK((sample.registers.empty() && sample.stack.empty() && !sample.stack_cut && sample.stack_missing == 0));
}

TEST_CASE("arrays after raw data of any length are complete") {
    for (std::uint32_t length = 0; length < 9; ++length) {
        RecordBody body(std::endian::native);
        body.u64(3).u64(1).u64(2).u64(3).u32(length);
        for (std::uint32_t i = 0; i < length; ++i) body.u8(0xff);
        body.u64(1).u64(0x1000).u64(0x2000).u64(3).u64(2).u64(7).u64(8);
        RecordFormat format{.fields = sample::callchain | sample::raw | sample::branch_stack | sample::regs_user};
        format.register_mask = 0x3;
        Decoder decoder;
        Sample sample;
        REQUIRE(decoder.sample(0, body.bytes(), format, sample));
        CHECK(list(sample.callchain) == std::vector<std::uint64_t>{1, 2, 3});
        CHECK((sample.raw.size() == length && sample.branches.size() == 1 && sample.branches[0].to == 0x2000));
        CHECK(list(sample.registers) == std::vector<std::uint64_t>{7, 8});
    }
}

TEST_CASE("the CPU mode comes from the record's header") {
    Decoder decoder;
    Sample sample;
    const std::vector<CpuMode> modes{CpuMode::unknown,      CpuMode::kernel,     CpuMode::user,   CpuMode::hypervisor,
                                     CpuMode::guest_kernel, CpuMode::guest_user, CpuMode::unknown};
    for (std::uint16_t mode = 0; mode < modes.size(); ++mode) {
        REQUIRE(decoder.sample(static_cast<std::uint16_t>(mode | 1U << 14), {}, {}, sample));
        CHECK(sample.cpu_mode == modes[mode]);
    }
}

TEST_CASE("records other than samples in both byte orders") {
    const RecordFormat format{.fields = sample::tid | sample::time | sample::cpu | sample::identifier};
    CHECK(trailer_size(format) == 32);
    for (const std::endian order : {std::endian::little, std::endian::big}) {
        const Decoder decoder(order);
        SideRecord decoded;
        RecordBody map(order);
        map.u32(10).u32(11).u64(0x7000).u64(0x2000).u64(0x1000).u32(8).u32(1).u64(4242).u64(6).u32(5).u32(2);
        map.text("/usr/lib/libc.so.6").trailer(11, 900, 3, 55);
        const Bytes bytes = map.bytes();
        CHECK(own_size(record::mmap2, bytes, order) == bytes.size() - 32);
        const auto trailed = split_trailer(record::mmap2, bytes, format, order);
        REQUIRE(trailed);
        CHECK((trailed->origin.id == 55 && trailed->origin.tid == 11));
        CHECK((trailed->origin.cpu == 3 && trailed->origin.time_ns == 900));
        const RecordHeader header{record::mmap2, misc::user, 0};
        REQUIRE(decoder.side_record(header, trailed->body, trailed->origin, decoded) == Decoded::ok);
        const auto& found = std::get<MmapRecord>(decoded);
        CHECK((found.start == 0x7000 && found.length == 0x2000 && found.page_offset == 0x1000));
        CHECK((found.device_major == 8 && found.inode == 4242 && found.executable() && found.time_ns == 900));
        CHECK((found.path == "/usr/lib/libc.so.6" && found.cpu_mode == CpuMode::user));
        // With the trailer, as in an importer.
        REQUIRE(decoder.side_record(header, bytes, {}, decoded) == Decoded::ok);
        CHECK(std::get<MmapRecord>(decoded).path == "/usr/lib/libc.so.6");

        for (const bool data : {false, true}) {
            RecordBody old(order);
            old.u32(10).u32(11).u64(0x7000).u64(0x2000).u64(0x1000).text("/bin/x");
            const std::uint16_t kind = data ? misc::mmap_data : 0;
            REQUIRE(decoder.side_record({record::mmap, kind, 0}, old.bytes(), {}, decoded) == Decoded::ok);
            CHECK((std::get<MmapRecord>(decoded).executable() != data && std::get<MmapRecord>(decoded).inode == 0));
        }
        for (const bool exec : {false, true}) {
            RecordBody fork(order);
            fork.u32(1).u32(2).u32(3).u32(4).u64(5);
            const std::uint16_t kind = exec ? misc::fork_exec : 0;
            REQUIRE(decoder.side_record({record::fork, kind, 0}, fork.bytes(), {}, decoded) == Decoded::ok);
            const auto& task = std::get<TaskRecord>(decoded);
            CHECK((task.pid == 1 && task.parent_pid == 2 && task.tid == 3 && task.parent_tid == 4));
            CHECK((task.with_maps != exec && !task.exit));
        }
    }
}

TEST_CASE("a deferred call chain in both byte orders, at any alignment, with and without a trailer") {
    for (const std::endian order : {std::endian::little, std::endian::big})
        for (const std::size_t shift : {0, 4}) {
            Decoder decoder(order);
            RecordBody body(order);
            body.u64(0x0000'0003'0000'0007).u64(2).u64(0x401000).u64(0x402000).trailer(11, 900, 3, 55);
            const Bytes bytes = body.bytes(shift);
            for (const std::size_t size : {bytes.size(), bytes.size() - 32}) {
                const auto deferred = decoder.deferred_callchain(bytes.first(size));
                REQUIRE(deferred);
                CHECK(deferred->cookie == 0x0000'0003'0000'0007);
                CHECK(list(deferred->callchain) == std::vector<std::uint64_t>{0x401000, 0x402000});
            }
            for (std::size_t size = 0; size < 32; ++size) CHECK_FALSE(decoder.deferred_callchain(bytes.first(size)));
            RecordBody none(order);
            none.u64(5).u64(0);
            CHECK(decoder.deferred_callchain(none.bytes(shift))->callchain.empty());
            RecordBody far(order);
            far.u64(5).u64(~std::uint64_t{0}).u64(1);
            CHECK_FALSE(decoder.deferred_callchain(far.bytes(shift)));
        }
}

TEST_CASE("a trailer has the same fields as samples") {
    RecordBody body(std::endian::native);
    body.u64(12).u64(900).u64(70).u64(71);  // lost samples; time, id, stream
    const RecordFormat format{.fields = sample::ip | sample::time | sample::id | sample::stream_id};
    const auto trailed = split_trailer(record::lost_samples, body.bytes(), format);
    REQUIRE(trailed);
    CHECK((trailed->body.size() == 8 && trailed->origin.time_ns == 900 && trailed->origin.id == 70));
    CHECK_FALSE(split_trailer(record::lost_samples, body.bytes().first(16), format));
    CHECK(trailer_size({}) == 0);
}

TEST_CASE("the header of a record") {
    RecordBody body(std::endian::big);
    const auto header = record_header(body.u32(9).u16(2).u16(64).bytes(), std::endian::big);
    REQUIRE(header);
    CHECK((header->type == 9 && header->misc == 2 && header->size == 64));
    CHECK_FALSE(record_header(body.bytes().first(7), std::endian::big));
}
