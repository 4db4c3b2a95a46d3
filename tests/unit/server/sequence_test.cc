#include "server/session/sequence.h"

#include <catch2/catch.hpp>

using flamewire::server::Sequence;
using Kind = Sequence::Kind;

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
    REQUIRE(sequence.classify(header(1)) == Kind::next);
    CHECK(sequence.advance(header(1)) == 0);
    CHECK(sequence.classify(header(1)) == Kind::duplicate);
    CHECK(sequence.classify(header(2)) == Kind::next);
    CHECK(sequence.advance(header(2)) == 0);
    CHECK(sequence.last_seq() == 2);
    CHECK(sequence.classify(header(1)) == Kind::duplicate);
}

TEST_CASE("a gap is counted, also before the first batch") {
    Sequence sequence;
    CHECK(sequence.classify(header(4)) == Kind::gap);
    CHECK(sequence.advance(header(4)) == 3);
    CHECK(sequence.classify(header(7)) == Kind::gap);
    CHECK(sequence.advance(header(7)) == 2);
    CHECK(sequence.missing() == 5);
}

TEST_CASE("a merged batch counts as all of its parts") {
    Sequence sequence;
    sequence.advance(header(1));
    CHECK(sequence.classify(header(5, 2)) == Kind::next);
    CHECK(sequence.advance(header(5, 2)) == 0);
    CHECK(sequence.last_seq() == 5);
    CHECK(sequence.classify(header(3)) == Kind::duplicate);
    CHECK(sequence.classify(header(5, 2)) == Kind::duplicate);
    CHECK(sequence.classify(header(8, 4)) == Kind::overlap);
    CHECK(sequence.classify(header(9, 8)) == Kind::gap);
}

TEST_CASE("epochs only increase, and invalid headers are refused") {
    Sequence sequence;
    sequence.advance(header(1, 0, 3));
    CHECK(sequence.classify(header(2, 0, 2)) == Kind::stale);
    CHECK(sequence.classify(header(2, 0, 4)) == Kind::next);
    CHECK(sequence.classify(header(0)) == Kind::malformed);
    CHECK(sequence.classify(header(2, 0, 0)) == Kind::malformed);
    CHECK(sequence.classify(header(2, 3)) == Kind::malformed);
}
