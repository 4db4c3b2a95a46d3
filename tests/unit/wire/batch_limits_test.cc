// Invalid batches: truncated, mutated, contradictory, or larger than the limits.
#include <catch2/catch.hpp>

#include <random>

#include "base/hex.h"
#include "wire/batch.h"

using namespace flamewire;
using namespace flamewire::wire;

namespace {

const std::string head =
    "0a10"
    "0102030405060708090a0b0c0d0e0f10"
    "1001"
    "1802";
const std::string event =
    "b00101"
    "ba0106"
    "08011002200a";  // event 1, period 10

// Supports only one-byte lengths.
std::string message(const std::string& tag_hex, const std::string& content_hex) {
    const auto length = static_cast<unsigned char>(content_hex.size() / 2);
    return tag_hex + to_hex(std::string(1, static_cast<char>(length))) + content_hex;
}
std::string rows(const std::string& content_hex) { return message("f201", content_hex); }

Result<Batch> try_decode(const std::string& hex) {
    EventPeriods periods;
    return decode(as_bytes_view(*from_hex(hex)), periods);
}
bool refused(const std::string& hex) {
    const auto batch = try_decode(hex);
    return !batch && batch.error().code == ErrorCode::invalid;
}

const std::string span =
    "0805"
    "1080ade204"
    "1803";
const std::string group =
    "220101"
    "2a0103"
    "320100"
    "3a0101";

}  // namespace

TEST_CASE("the parts below are a complete batch if all are valid") {
    REQUIRE(try_decode(head + event + rows(span + group + "420106")));
}

TEST_CASE("contradictions are refused") {
    CHECK(refused(""));
    CHECK(
        refused("0a10"
                "00000000000000000000000000000000"
                "1001"
                "1802"));  // no recording
    CHECK(
        refused("0a10"
                "0102030405060708090a0b0c0d0e0f10"
                "1802"));  // no epoch
    CHECK(
        refused("0a10"
                "0102030405060708090a0b0c0d0e0f10"
                "1001"));                                  // no seq
    CHECK(refused(head + "2003"));                         // first_seq 3 of seq 2
    CHECK(refused(head + rows(span + group + "420106")));  // no such event
    CHECK(refused(head + event +
                  rows(span + "220102"
                              "2a0103"
                              "320100"
                              "3a0101"
                              "420106")));  // event 2
    CHECK(refused(head + event +
                  rows(span + "220100"
                              "2a0103"
                              "320100"
                              "3a0101"
                              "420106")));  // event 0
    CHECK(refused(head + event +
                  rows(span + "220101"
                              "2a0103"
                              "320100"
                              "3a0102"
                              "420106")));  // group of 2, one row
    CHECK(refused(head + event +
                  rows(span + "220101"
                              "2a0103"
                              "320100"
                              "3a0100"
                              "420106")));                           // group of 0
    CHECK(refused(head + event + rows(span + group + "42020601")));  // row without group
    CHECK(refused(head + event +
                  rows(span + "220101"
                              "2a020303"
                              "320100"
                              "3a0101"
                              "420106")));  // columns of 1 and 2
    CHECK(refused(head + event +
                  rows(span + group +
                       "420106"
                       "4a020101")));  // counts of two rows
    CHECK(refused(head + event +
                  rows(span + group +
                       "420106"
                       "4a0100")));  // count 0
    CHECK(refused(head + event +
                  rows(span + group +
                       "420106"
                       "4a058080808010")));  // count 2^32
    CHECK(refused(head + event +
                  rows(span + group +
                       "420106"
                       "520115")));  // weight 10 - 11
    CHECK(refused(head + event +
                  rows("0805"
                       "1080ade204" +
                       group + "420106")));  // no span
    CHECK(refused(head + event +
                  rows("0805"
                       "1000"
                       "1803" +
                       group + "420106")));  // bucket of 0 ns
    CHECK(refused(head + event +
                  rows("08ffffffffffffffffff01"
                       "1080ade204"
                       "1803" +
                       group + "420106")));  // time overflows
    CHECK(refused(head + event +
                  rows(span + group +
                       "420a"
                       "ffffffffffffffffff01")));  // stack over 32 bits
    CHECK(refused(head + event +
                  rows(span + "220101"
                              "2a0103"
                              "320100"
                              "3a0102"
                              "420b"
                              "01"
                              "ffffffffffffffffff01")));
    CHECK(refused(head + "b00105"
                         "ba0102"
                         "2001"));  // events 1..4 unknown
    CHECK(refused(head + "5000"
                         "5a0163"));  // base 0
    CHECK(refused(head + "50ffffffff0f"
                         "5a0163"));  // ids over 32 bits
    CHECK(refused(head +
                  "8001"
                  "01" +
                  message("8a01",
                          "0a0102"
                          "120100")));  // parent of 1 at distance 2
    CHECK(refused(head +
                  "8001"
                  "01" +
                  message("8a01",
                          "0a0100"
                          "120100")));  // its own parent
    CHECK(refused(head +
                  "8001"
                  "01" +
                  message("8a01", "0a0101")));       // no location column
    CHECK(refused(head + message("7a", "0a0101")));  // no address column
    CHECK(refused(head + message("7a",
                                 "0a0101"
                                 "120100"
                                 "1a020101")));                // two flags
    CHECK(refused(head + message("aa02", "08ffffffffff01")));  // process over 32 bits
    CHECK(refused(head + message("3a", "8801ffffffffff01")));  // copied bytes over 32 bits
    CHECK(refused(head + "5a05"
                         "61"));                        // truncated within a string
    CHECK(refused(head + "28ffffffffffffffffffff01"));  // varint of 11 bytes
}

TEST_CASE("every truncation and every flipped bit gives a result, never a crash") {
    const std::string whole = *from_hex(head +
                                        "5001"
                                        "5a0163" +
                                        "700a"
                                        "7a11"
                                        "0a03010201"
                                        "1205"
                                        "8004"
                                        "a001"
                                        "1f"
                                        "1a03010001" +
                                        "800114"
                                        "8a0106"
                                        "0a0114"
                                        "120100" +
                                        event +
                                        rows(span + group +
                                             "420106"
                                             "4a0101"));
    std::size_t refusals = 0;
    for (std::size_t size = 0; size < whole.size(); ++size) {
        EventPeriods periods;
        if (!decode(as_bytes_view(std::string_view(whole).substr(0, size)), periods)) ++refusals;
    }
    CHECK(refusals > whole.size() / 2);
    for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
        std::string damaged = whole;
        damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
        EventPeriods periods;
        (void)decode(as_bytes_view(damaged), periods);
    }
}

TEST_CASE("a failed decode changes nothing") {
    EventPeriods periods;
    REQUIRE_FALSE(decode(as_bytes_view(*from_hex(head + event +
                                                 rows(span + group +
                                                      "420106"
                                                      "4a0100"))),
                         periods));
    REQUIRE(periods.empty());
    REQUIRE(decode(as_bytes_view(*from_hex(head + event)), periods));
    REQUIRE(periods == EventPeriods{0, 10});
    // The same entry again with another period: the first one stays.
    REQUIRE(decode(as_bytes_view(*from_hex(head + "b00101"
                                                  "ba0102"
                                                  "2063")),
                   periods));
    REQUIRE(periods == EventPeriods{0, 10});
}

TEST_CASE("lists that exceed a batch's limit are refused") {
    const std::string raw_head = *from_hex(head);
    std::string strings = raw_head;
    for (std::size_t i = 0; i <= max_batch_entries; ++i) strings += std::string("\x5a\x00", 2);
    EventPeriods periods;
    REQUIRE_FALSE(decode(as_bytes_view(strings), periods));
    strings.resize(strings.size() - 2);
    REQUIRE(decode(as_bytes_view(strings), periods));

    std::string unwinds = raw_head;
    for (std::size_t i = 0; i < max_batch_entries; ++i) unwinds += std::string("\xaa\x02\x00", 3);
    REQUIRE(decode(as_bytes_view(unwinds), periods));
    REQUIRE_FALSE(decode(as_bytes_view(unwinds + std::string("\xaa\x02\x00", 3)), periods));

    // One column with `size` values of one byte each, in the messages for rows, stacks and locations. The column alone
    // is not a complete table, so at the limit the error is a different one.
    const auto column_is_too_long = [&](const std::string& tag, char column, std::size_t size) {
        const auto length = [](std::size_t value) {
            std::string bytes;
            for (; value > 0x7F; value >>= 7) bytes += static_cast<char>(value | 0x80);
            return bytes + static_cast<char>(value);
        };
        const std::string inner = column + length(size) + std::string(size, '\0');
        const auto batch =
            decode(as_bytes_view(raw_head + *from_hex(event) + *from_hex(tag) + length(inner.size()) + inner), periods);
        return !batch && batch.error().message.find("longer than a batch may have") != std::string::npos;
    };
    const std::size_t most = std::size_t{1} << 20;
    CHECK_FALSE(column_is_too_long("f201", '\x42', most));
    CHECK(column_is_too_long("f201", '\x42', most + 1));
    CHECK_FALSE(column_is_too_long("8a01", '\x0a', most));
    CHECK(column_is_too_long("8a01", '\x0a', most + 1));
    CHECK_FALSE(column_is_too_long("7a", '\x0a', most));
    CHECK(column_is_too_long("7a", '\x0a', most + 1));
}

TEST_CASE("an epoch has 4,095 events") {
    std::string events = *from_hex(head + "b00101");
    for (int id = 1; id <= 4095; ++id) events += *from_hex("ba0102200a");
    EventPeriods periods;
    REQUIRE(decode(as_bytes_view(events), periods));
    CHECK(periods.size() == 4096);  // none has id 0
    periods.clear();
    const auto batch = decode(as_bytes_view(events + *from_hex("ba0102200a")), periods);
    REQUIRE_FALSE(batch);
    CHECK_THAT(batch.error().message, Catch::Contains("too many events"));
    CHECK(periods.empty());
    // The same with two batches.
    REQUIRE(decode(as_bytes_view(events), periods));
    CHECK_FALSE(decode(as_bytes_view(*from_hex(head + "b0018020" + "ba0102200a")), periods));
}

TEST_CASE("encode keeps numbers within the limits of decode") {
    Batch batch;
    batch.recording_id[0] = 1;
    batch.seq = 1;
    const std::uint64_t most = 0x7FFF'FFFF'FFFF'FFFFU;
    batch.rows = {
        {.bucket = 3, .event = 1, .thread = 1, .cpu = 0, .stack = 0xFFFF'FFFFU, .count = 0xFFFF'FFFFU, .weight = most},
        {.bucket = 3,
         .event = 1,
         .thread = 1,
         .cpu = 0,
         .stack = 0xFFFF'FFFFU,
         .count = 2,
         .weight = ~std::uint64_t{0}},
        {.bucket = std::uint64_t{1} << 33,
         .event = 1,
         .thread = 1,
         .cpu = 0,
         .stack = 0xFFFF'FFFFU,
         .count = 1,
         .weight = 0}};
    EventPeriods periods{0, ~std::uint64_t{0}};
    const std::string bytes = encode(batch, periods);
    const auto back = decode(as_bytes_view(bytes), periods);
    if (!back) FAIL(back.error().message);
    // The two old rows are moved to 2^32 - 2 buckets before the newest one. Their counts do not fit into one row.
    const std::uint64_t oldest = (std::uint64_t{1} << 33) - 0xFFFF'FFFEU;
    REQUIRE(back->rows == std::vector<Row>{{oldest, 1, 1, 0, 0xFFFF'FFFFU, 0xFFFF'FFFFU, most},
                                           {oldest, 1, 1, 0, 0xFFFF'FFFFU, 2, most},
                                           {std::uint64_t{1} << 33, 1, 1, 0, 0xFFFF'FFFFU, 1, 0}});
}
