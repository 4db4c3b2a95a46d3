// Batches compared with bytes written by hand from docs/wire.proto, and round trips of random ones.
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <map>
#include <random>
#include <tuple>

#include "base/hex.h"
#include "wire/batch.h"

using namespace flamewire;
using namespace flamewire::wire;

namespace {

RecordingId counting_id() {
    RecordingId id{};
    for (std::size_t i = 0; i < id.size(); ++i) id[i] = static_cast<std::uint8_t>(i + 1);
    return id;
}

std::string header_hex() {
    return "0a10"
           "0102030405060708090a0b0c0d0e0f10"
           "1001"
           "1802";
}

Batch header_batch() {
    Batch batch;
    batch.recording_id = counting_id();
    batch.epoch = 1;
    batch.seq = 2;
    return batch;
}

Batch decoded(const std::string& hex) {
    EventPeriods periods;
    auto batch = decode(as_bytes_view(*from_hex(hex)), periods);
    if (!batch) FAIL(batch.error().message);
    return *batch;
}

}  // namespace

TEST_CASE("rows: groups and keys follow the schema") {
    // In unsorted order. (5, stack 2) occurs twice, with counts that add up to 1 + 0.
    Batch batch = header_batch();
    batch.strings = {"c", "n"};
    batch.events = {{.name = 1, .unit = 2, .frequency_hz = 0, .period = 10}};
    batch.rows = {{.bucket = 7, .event = 1, .thread = 3, .cpu = 0, .stack = 2, .count = 2, .weight = 21},
                  {.bucket = 5, .event = 1, .thread = 3, .cpu = 0, .stack = 2, .count = 1, .weight = 10},
                  {.bucket = 7, .event = 1, .thread = 3, .cpu = 0, .stack = 2, .count = 1, .weight = 10},
                  {.bucket = 6, .event = 1, .thread = 3, .cpu = 0, .stack = 9, .count = 0, .weight = 0}};
    const EventPeriods periods{0, 10};
    // base_bucket 5, bucket_ns 10,000,000, span 3; one group of 2; keys 2*3+0 = 6 and 2*3+2 = 8; counts 1, 3; weights
    // +0, +1.
    const std::string expected = header_hex() +
                                 "5001"
                                 "5a0163"
                                 "5a016e"
                                 "b00101"
                                 "ba0106"
                                 "08011002200a"
                                 "f20121"
                                 "0805"
                                 "1080ade204"
                                 "1803"
                                 "220101"
                                 "2a0103"
                                 "320100"
                                 "3a0102"
                                 "42020602"
                                 "4a020103"
                                 "52020002";
    REQUIRE(to_hex(encode(batch, periods)) == expected);

    const Batch back = decoded(expected);
    REQUIRE(back.rows ==
            std::vector<Row>{{.bucket = 5, .event = 1, .thread = 3, .cpu = 0, .stack = 2, .count = 1, .weight = 10},
                             {.bucket = 7, .event = 1, .thread = 3, .cpu = 0, .stack = 2, .count = 3, .weight = 31}});
    REQUIRE(back.strings == std::vector<std::string>{"c", "n"});
    REQUIRE(back == batch);
}

TEST_CASE("locations and stacks: deltas by module, locations backwards from the next new one") {
    Batch batch = header_batch();
    batch.location_base = 10;
    batch.locations = {{.module = 1, .address = 0x100, .flags = 1, .name = 0, .file = 0, .line = 0},
                       {.module = 2, .address = 0x50, .flags = 0, .name = 0, .file = 0, .line = 0},
                       {.module = 1, .address = 0xF0, .flags = 1, .name = 0, .file = 0, .line = 0}};
    batch.stack_base = 20;
    // New 10, new 11, known 4, new 12, 12 again, and 13, which is not announced (it wraps but stays exact).
    batch.stacks = {{0, 10}, {20, 11}, {21, 4}, {3, 12}, {23, 12}, {0, 13}, {0, 20}};
    const std::string expected =
        header_hex() +
        "700a"
        "7a11"
        "0a03010201"
        "1205"
        "8004"
        "a001"
        "1f"
        "1a03010001"
        // own - parent: 20, 1, 1, 20, 1, 25, 26. Backwards: 0, 0, 12-4, 0, 13-12, 0, 14-20 modulo 2^32.
        "800114"
        "8a0116"
        "0a07"
        "14010114"
        "01191a"
        "120b"
        "0000080001"
        "00"
        "faffffff0f";
    const std::string bytes = to_hex(encode(batch, {}));
    CHECK(bytes == expected);
    REQUIRE(decoded(bytes) == batch);
}

TEST_CASE("hits: one column per member, and the description of their values") {
    Batch batch = header_batch();
    batch.events = {{.name = 1, .unit = 2, .frequency_hz = 0, .period = 10, .traced = true}};
    batch.events[0].fields = {{"size", FieldKind::unsigned_number}, {"ptr", FieldKind::address}};
    batch.events[0].print_format = "\"\"";
    Hits hits{
        .event = 1, .fields = 2, .hits = {}, .values = {7, 0x10, 8, 0}, .texts = {"ab"}, .addresses = {{0x10, 3}}};
    hits.hits = {{.time_ns = 100, .thread = 1, .cpu = 0, .stack = 5, .weight = 1},
                 {.time_ns = 98, .thread = 2, .cpu = 0, .stack = 5, .weight = 17}};
    hits.dropped = 3;
    batch.hits = {hits};
    const std::string expected = header_hex() +
                                 "b00101"
                                 "ba011d"
                                 "08011002200a2801"
                                 "32060a0473697a65"
                                 "32070a037074721002"
                                 "3a022222"
                                 "c2022b"
                                 "080110021a0261622003"
                                 "2a03c80103"
                                 "32020102"
                                 "3a020000"
                                 "42020505"
                                 "4a020010"
                                 "520407100800"
                                 "5a0110"
                                 "620103";
    CHECK(to_hex(encode(batch, {})) == expected);
    CHECK(decoded(expected) == batch);
}

TEST_CASE("hits whose columns do not match are refused") {
    const auto refused = [](const std::string& hits) {
        EventPeriods periods;
        const std::string size = fmt::format("{:02x}", hits.size() / 2);
        return !decode(as_bytes_view(*from_hex(header_hex() + "c202" + size + hits)), periods);
    };
    const std::string two_times = "2a020204", thread = "32020000", cpu = "3a020000", stack = "42020000";
    CHECK_FALSE(refused("0801" + two_times + thread + cpu + stack));
    CHECK(refused("0801" + two_times + thread + cpu + "420100"));
    CHECK(refused("0801" + two_times + thread + cpu + stack + "4a0100"));
    // Three values for two hits with one field each, and a field more than an event may have.
    CHECK(refused("08011001" + two_times + thread + cpu + stack + "5203000000"));
    CHECK(refused("08011041"));
    CHECK(refused("08015a020101620101"));
}

TEST_CASE("a table entry that consists of zeros keeps its place") {
    Batch batch = header_batch();
    batch.modules.resize(2);
    batch.modules[1].kind = ModuleKind::jit;
    batch.threads = {{0, 0, 0}, {7, 0, 0}};
    batch.end = End{};
    const std::string expected = header_hex() +
                                 "6001"
                                 "6a00"
                                 "6a020803"
                                 "a00101"
                                 "aa0100"
                                 "aa01020807"
                                 "a20200";
    const std::string bytes = to_hex(encode(batch, {}));
    CHECK(bytes == expected);
    REQUIRE(decoded(expected) == batch);
}

TEST_CASE("unwind counts of processes, and the requested stack options") {
    Batch batch = header_batch();
    batch.recording = Recording{};
    batch.recording->unwind = "auto";
    batch.recording->stack_bytes = 16384;
    batch.recording->max_depth = 1024;
    batch.locations = {{.module = 1, .address = 0x40, .flags = 5, .name = 0, .file = 0, .line = 0}};
    batch.unwinds = {{.process = 3,
                      .mode = StackMode::dwarf,
                      .why = "x",
                      .samples = 300,
                      .whole = 290,
                      .joined = 5,
                      .truncated = 2,
                      .open_end = 1,
                      .stopped = 2,
                      .frames = 4096,
                      .stack_bytes = 16384},
                     {}};
    batch.end = End{};
    const std::string expected = header_hex() +
                                 "3a0f"
                                 "5a046175746f"
                                 "8801808001"
                                 "9001"
                                 "8008"
                                 "7001"
                                 "7a0a"
                                 "0a0101"
                                 "1202"
                                 "8001"
                                 "1a0105"
                                 "a20200"
                                 "aa021c"
                                 "0803"
                                 "1002"
                                 "1a0178"
                                 "20ac02"
                                 "28a202"
                                 "3005"
                                 "3802"
                                 "4001"
                                 "4802"
                                 "508020"
                                 "58808001"
                                 "aa0200";
    const std::string bytes = to_hex(encode(batch, {}));
    CHECK(bytes == expected);
    REQUIRE(decoded(expected) == batch);
}

TEST_CASE("a reading of counters consists of columns; columns of zeros are left out") {
    Batch batch = header_batch();
    CounterReading reading{.start_ns = 1000, .end_ns = 1500, .after_gap = true, .values = {}};
    reading.values = {{.name = 1, .unit = 2, .thread = 5, .value = 300, .enabled_ns = 10, .running_ns = 5},
                      {.name = 3, .unit = 2, .status = CounterStatus::forbidden}};
    batch.counters = {reading, {}};
    const std::string expected = header_hex() +
                                 "b20225"
                                 "08e807"
                                 "10dc0b"
                                 "1801"
                                 "22020103"
                                 "2a020202"
                                 "3a020500"
                                 "4a020004"
                                 "5203ac0200"
                                 "5a020a00"
                                 "62020500"
                                 "b2020a"
                                 "2200"
                                 "2a00"
                                 "5200"
                                 "5a00"
                                 "6200";
    const std::string bytes = to_hex(encode(batch, {}));
    CHECK(bytes == expected);
    REQUIRE(decoded(expected) == batch);

    // An unknown status, from a later version, is decoded as not counted.
    const Batch later = decoded(header_hex() +
                                "b20212"
                                "220101"
                                "2a0102"
                                "4a0109"
                                "520101"
                                "5a0101"
                                "620101");
    REQUIRE(later.counters.at(0).values.at(0).status == CounterStatus::not_counted);
    // Columns of different lengths, and an end before the beginning.
    EventPeriods periods;
    for (const char* broken : {"b20209"
                               "220101"
                               "2a0102"
                               "520101",
                               "b20204"
                               "0802"
                               "1001"}) {
        const auto bytes_of = from_hex(header_hex() + broken);
        REQUIRE(bytes_of);
        CHECK_FALSE(decode(as_bytes_view(*bytes_of), periods));
    }
}

TEST_CASE("peek_header reads only the four fields") {
    const auto header = peek_header(as_bytes_view(*from_hex(header_hex() + "2001"
                                                                           "ba0106"
                                                                           "08011002200a")));
    REQUIRE(header);
    REQUIRE(header->recording_id == counting_id());
    REQUIRE(header->epoch == 1);
    REQUIRE(header->seq == 2);
    REQUIRE(header->first_seq == 1);
    REQUIRE_FALSE(
        peek_header(as_bytes_view(*from_hex("1001"
                                            "1802"))));
    REQUIRE_FALSE(
        peek_header(as_bytes_view(*from_hex("0a020102"
                                            "1001"
                                            "1802"))));
    REQUIRE_FALSE(peek_header({}));
}

TEST_CASE("unknown fields and kinds are skipped") {
    // 50: varint, fixed64, bytes, fixed32. A module with kind 9 and field 15. Of two lifecycles, kind 7 is dropped and
    // kind 2 stays. A stack mode of 9, and a field 15 in its message.
    const Batch batch = decoded(header_hex() +
                                "9003ff01"
                                "91030102030405060708"
                                "920303aabbcc"
                                "950301020304"
                                "6a0408097801"
                                "fa01020807"
                                "fa01020802"
                                "aa0206080110097801");
    REQUIRE(batch.modules == std::vector<Module>{Module{}});
    REQUIRE(batch.lifecycle == std::vector<Lifecycle>{{LifecycleKind::exit, 0, 0, 0}});
    ProcessUnwind unwind;
    unwind.process = 1;
    REQUIRE(batch.unwinds == std::vector<ProcessUnwind>{unwind});
}

namespace {

using Key = std::tuple<Id, Id, std::uint32_t, Id, std::uint64_t>;

Batch random_batch(std::mt19937_64& random, const EventPeriods& periods) {
    const auto up_to = [&](std::uint64_t limit) { return random() % (limit + 1); };
    const auto u32 = [&](std::uint64_t limit) { return static_cast<std::uint32_t>(up_to(limit)); };
    const auto wide = [&] { return random() >> up_to(63); };
    Batch batch = header_batch();
    batch.epoch = 1 + u32(5);
    batch.seq = 1 + wide() / 2;
    batch.first_seq = up_to(batch.seq);
    batch.monotonic_ns = wide();
    batch.realtime_ns = -static_cast<std::int64_t>(wide() / 2);
    if (up_to(1)) {
        batch.recording = Recording{.target = "pid 1",
                                    .pids = {1, u32(70000)},
                                    .host = "h",
                                    .arch = "a",
                                    .kernel_release = "k",
                                    .agent_version = "v",
                                    .boot_id = "b",
                                    .frequency_hz = u32(9999),
                                    .period = wide(),
                                    .effective_frequency_hz = 5,
                                    .unwind = "fp",
                                    .stack_bytes = u32(65528),
                                    .max_depth = u32(4096),
                                    .kernel = up_to(1) != 0,
                                    .interval_ms = 250,
                                    .start_ns = wide(),
                                    .page_size = 4096,
                                    .cpus = 2};
    }
    for (auto n = up_to(3); n-- > 0;) batch.strings.emplace_back(up_to(300), static_cast<char>(random()));
    if (!batch.strings.empty()) batch.string_base = 1 + u32(1000);
    for (auto n = up_to(3); n-- > 0;)
        batch.modules.push_back({static_cast<ModuleKind>(up_to(3)), u32(9), "\x01\x02", wide(), wide(), wide(), -5});
    for (auto n = up_to(50); n-- > 0;) batch.locations.push_back({u32(4), wide(), u32(7), u32(1), u32(1), u32(500)});
    for (auto n = up_to(50); n-- > 0;)
        batch.stacks.push_back({u32(batch.stacks.size()), static_cast<Id>(wide()) & 0x7FFFFFFFU});
    if (!batch.locations.empty() || !batch.stacks.empty()) batch.location_base = 1 + u32(70000);
    for (auto n = up_to(2); n-- > 0;)
        batch.processes.push_back({u32(9), u32(9), u32(9), wide(), u32(3), u32(9), u32(9), u32(9), u32(9), u32(9)});
    for (auto n = up_to(2); n-- > 0;) batch.threads.push_back({u32(9), u32(70000), u32(9)});
    for (auto n = up_to(400); n-- > 0;) {
        Row row{.bucket = 1'000'000 + up_to(30),
                .event = 1 + u32(1),
                .thread = u32(2),
                .cpu = u32(1),
                .stack = u32(40),
                .count = 1 + u32(up_to(3) == 0 ? 90 : 0),
                .weight = 0};
        row.weight = up_to(4) == 0 ? wide() / 1024 : row.count * periods[row.event];
        batch.rows.push_back(row);
    }
    for (auto n = up_to(2); n-- > 0;)
        batch.lifecycle.push_back({static_cast<LifecycleKind>(up_to(3)), wide(), u32(9), u32(9)});
    for (auto n = up_to(2); n-- > 0;)
        batch.losses.push_back({static_cast<LossReason>(up_to(8)), wide(), wide(), wide(), u32(2), u32(9)});
    for (auto n = up_to(2); n-- > 0;) batch.symbols.push_back({u32(9), wide(), wide(), u32(9)});
    for (auto n = up_to(1); n-- > 0;) batch.notices.push_back({"code", "text", ""});
    for (auto n = up_to(2); n-- > 0;)
        batch.counters.push_back({.start_ns = up_to(1000),
                                  .end_ns = 1000 + wide() / 2,
                                  .after_gap = up_to(1) != 0,
                                  .values = std::vector<CounterValue>(
                                      u32(5), {u32(9), u32(9), u32(1), u32(1), u32(1),
                                               static_cast<CounterStatus>(up_to(4)), wide(), wide(), wide()})});
    for (auto n = up_to(2); n-- > 0;) {
        ThreadTimes times{.thread = u32(9),
                          .end_ns = UINT64_MAX / 2 + wide() / 2,
                          .state_ns = {wide() / 16, wide() / 16, 0, wide() / 16},
                          .preempted = u32(9),
                          .slept = u32(70000),
                          .io_waits = u32(9),
                          .slices = {},
                          .queued = {}};
        for (auto m = up_to(9); m-- > 0;) times.slices.add(wide() >> up_to(63));
        for (auto m = up_to(9); m-- > 0;) times.queued.add(wide() >> up_to(63));
        batch.thread_times.push_back(times);
    }
    for (auto n = up_to(2); n-- > 0;) {
        Hits hits{.event = 1 + u32(2), .fields = u32(4), .hits = {}, .values = {}, .texts = {}, .addresses = {}};
        hits.dropped = wide();
        for (auto m = up_to(9); m-- > 0;) hits.hits.push_back({wide(), u32(99), u32(7), u32(99), wide()});
        for (std::size_t m = hits.hits.size() * hits.fields; m-- > 0;) hits.values.push_back(wide());
        for (auto m = up_to(3); m-- > 0;) hits.texts.emplace_back(up_to(9), 't');
        std::uint64_t address = 0;
        for (auto m = up_to(3); m-- > 0;) hits.addresses.push_back({address += 1 + up_to(1'000), u32(99)});
        batch.hits.push_back(hits);
    }
    for (auto n = up_to(2); n-- > 0;)
        batch.unwinds.push_back({u32(9), static_cast<StackMode>(up_to(3)), std::string(up_to(90), 'w'), wide(), wide(),
                                 wide(), wide(), wide(), wide(), wide(), wide()});
    if (up_to(1)) batch.agent = AgentStats{wide(), wide(), wide(), wide(), wide(), wide(), u32(9), wide(), u32(9)};
    if (up_to(3) == 0) batch.end = End{"stopped", static_cast<std::int32_t>(up_to(500)) - 250};
    return batch;
}

std::map<Key, std::pair<std::uint64_t, std::uint64_t>> folded(const std::vector<Row>& rows) {
    std::map<Key, std::pair<std::uint64_t, std::uint64_t>> sums;
    for (const Row& row : rows) {
        auto& [count, weight] = sums[{row.event, row.thread, row.cpu, row.stack, row.bucket}];
        count += row.count;
        weight += row.weight;
    }
    return sums;
}

}  // namespace

TEST_CASE("random batches are decoded unchanged, except that rows are folded") {
    std::mt19937_64 random(7);
    const EventPeriods known{0, 1'001'001, 0};
    for (int round = 0; round < 300; ++round) {
        Batch batch = random_batch(random, known);
        const auto expected = folded(batch.rows);
        const Batch before = batch;
        const std::string bytes = encode(batch, known);
        EventPeriods periods = known;
        auto back = decode(as_bytes_view(bytes), periods);
        if (!back) FAIL(back.error().message);
        REQUIRE(*back == batch);
        REQUIRE(folded(back->rows) == expected);
        REQUIRE(back->rows.size() == expected.size());
        Batch rest = *back;
        rest.rows = before.rows;
        REQUIRE(rest == before);
    }
}
