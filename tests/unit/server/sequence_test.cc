#include "server/session/sequence.h"

#include <catch2/catch.hpp>

using flamewire::server::Sequence;
using Classification = Sequence::Classification;

namespace {

flamewire::wire::BatchHeader header(std::uint64_t seq, std::uint64_t first_seq = 0, std::uint32_t epoch = 1) {
    flamewire::wire::BatchHeader result;
    result.epoch = epoch;
    result.seq = seq;
    result.first_seq = first_seq;
    return result;
}

}  // namespace

TEST_CASE("batches are accepted once and in order") {
    Sequence sequence;
    REQUIRE(sequence.judge(header(1)) == Classification::next);
    CHECK(sequence.take(header(1)) == 0);
    CHECK(sequence.judge(header(1)) == Classification::duplicate);
    CHECK(sequence.judge(header(2)) == Classification::next);
    CHECK(sequence.take(header(2)) == 0);
    CHECK(sequence.last_seq() == 2);
    CHECK(sequence.judge(header(1)) == Classification::duplicate);
}

TEST_CASE("a gap is counted, also before the first batch") {
    Sequence sequence;
    CHECK(sequence.judge(header(4)) == Classification::gap);
    CHECK(sequence.take(header(4)) == 3);
    CHECK(sequence.judge(header(7)) == Classification::gap);
    CHECK(sequence.take(header(7)) == 2);
    CHECK(sequence.missing() == 5);
}

TEST_CASE("a merged batch counts as all of its parts") {
    Sequence sequence;
    sequence.take(header(1));
    CHECK(sequence.judge(header(5, 2)) == Classification::next);
    CHECK(sequence.take(header(5, 2)) == 0);
    CHECK(sequence.last_seq() == 5);
    CHECK(sequence.judge(header(3)) == Classification::duplicate);
    CHECK(sequence.judge(header(5, 2)) == Classification::duplicate);
    CHECK(sequence.judge(header(8, 4)) == Classification::overlap);
    CHECK(sequence.judge(header(9, 8)) == Classification::gap);
}

TEST_CASE("epochs only increase, and invalid headers are refused") {
    Sequence sequence;
    sequence.take(header(1, 0, 3));
    CHECK(sequence.judge(header(2, 0, 2)) == Classification::stale);
    CHECK(sequence.judge(header(2, 0, 4)) == Classification::next);
    CHECK(sequence.judge(header(0)) == Classification::malformed);
    CHECK(sequence.judge(header(2, 0, 0)) == Classification::malformed);
    CHECK(sequence.judge(header(2, 3)) == Classification::malformed);
}
