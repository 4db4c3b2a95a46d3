#include "recording/hit_table.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <string>

using namespace flamewire;
using namespace flamewire::recording;

namespace {

const perf::ValueFields fields{{"size", perf::ValueKind::unsigned_number, perf::ValueField::Place::fixed, 0, 8},
                               {"ptr", perf::ValueKind::address, perf::ValueField::Place::fixed, 8, 8},
                               {"name", perf::ValueKind::text, perf::ValueField::Place::fixed, 16, 16}};

struct Data {
    std::uint64_t size = 0, ptr = 0;
    char name[16] = {};
};

std::vector<std::uint64_t> add(HitTable& table, wire::Id event, std::uint64_t time_ns, std::uint64_t size,
                               std::uint64_t ptr, const char* name) {
    Data data{size, ptr, {}};
    std::strncpy(data.name, name, sizeof data.name - 1);
    perf::Sample sample;
    sample.raw = std::as_bytes(std::span(&data, 1));
    return table.add(event, {time_ns, 1, 2, 3, 1}, sample, fields);
}

}  // namespace

TEST_CASE("hits with their values, by event") {
    HitTable table;
    CHECK(add(table, 4, 100, 32, 0xabc, "one") == std::vector<std::uint64_t>{0xabc});
    CHECK(add(table, 5, 110, 1, 0, "other").empty());
    CHECK(add(table, 4, 120, 64, 0xabc, "two").empty());
    CHECK(add(table, 4, 130, 16, 0xdef, "one") == std::vector<std::uint64_t>{0xdef});
    table.place(4, 0xabc, 77);
    const std::vector<wire::Hits> hits = table.take();
    REQUIRE(hits.size() == 2);
    CHECK(hits[0].event == 4);
    CHECK(hits[0].fields == 3);
    REQUIRE(hits[0].hits.size() == 3);
    CHECK(hits[0].hits[1] == wire::Hit{120, 1, 2, 3, 1});
    CHECK(hits[0].values == std::vector<std::uint64_t>{32, 0xabc, 0, 64, 0xabc, 1, 16, 0xdef, 0});
    CHECK(hits[0].texts == std::vector<std::string>{"one", "two"});
    CHECK(hits[0].addresses == std::vector<wire::HitAddress>{{0xabc, 77}});
    CHECK(hits[1].event == 5);
    CHECK(hits[1].texts == std::vector<std::string>{"other"});
    CHECK(table.take().empty());
}

TEST_CASE("more hits than a batch holds are counted") {
    HitTable table;
    for (std::size_t i = 0; i < wire::max_batch_hits + 10; ++i) add(table, 1 + i % 2, i, i, 0, "x");
    const std::vector<wire::Hits> hits = table.take();
    REQUIRE(hits.size() == 2);
    CHECK(hits[0].hits.size() + hits[1].hits.size() == wire::max_batch_hits);
    CHECK(hits[0].dropped + hits[1].dropped == 10);
    // The next batch has room again.
    add(table, 1, 0, 0, 0, "x");
    CHECK(table.take().front().hits.size() == 1);
}

TEST_CASE("samples with other fields, and with more texts than the wire takes, are counted") {
    HitTable table;
    add(table, 1, 0, 0, 0, "x");
    perf::Sample sample;
    table.add(1, {1, 1, 0, 0, 1}, sample, {fields[0]});
    CHECK(table.take().front().dropped == 1);
    const perf::ValueFields two{{"a", perf::ValueKind::bytes, perf::ValueField::Place::fixed, 0, 8},
                                {"b", perf::ValueKind::bytes, perf::ValueField::Place::fixed, 8, 8}};
    for (std::uint64_t i = 0; i < 40'000; ++i) {
        const std::uint64_t data[] = {i, i | std::uint64_t{1} << 40};
        sample.raw = std::as_bytes(std::span(data));
        table.add(1, {i, 1, 0, 0, 1}, sample, two);
    }
    const wire::Hits hits = table.take().front();
    CHECK(hits.texts.size() == wire::max_batch_hits);
    CHECK(hits.hits.size() == wire::max_batch_hits / 2);
    CHECK(hits.dropped == 40'000 - wire::max_batch_hits / 2);
}

TEST_CASE("texts have a limit, too") {
    HitTable table;
    const perf::ValueFields long_text{{"text", perf::ValueKind::bytes, perf::ValueField::Place::fixed, 0, 1'024}};
    std::string data(1'024, 'a');
    std::size_t added = 0;
    for (; added < 10'000; ++added) {
        std::memcpy(data.data(), &added, sizeof added);
        perf::Sample sample;
        sample.raw = as_bytes_view(data);
        table.add(1, {added, 1, 0, 0, 1}, sample, long_text);
    }
    const std::vector<wire::Hits> hits = table.take();
    CHECK(hits[0].hits.size() == wire::max_hit_text_bytes / 1'024);
    CHECK(hits[0].dropped == added - hits[0].hits.size());
}

TEST_CASE("fields on the wire") {
    CHECK(fields_on_wire(fields) == std::vector<wire::EventField>{{"size", wire::FieldKind::unsigned_number},
                                                                  {"ptr", wire::FieldKind::address},
                                                                  {"name", wire::FieldKind::text}});
}
