#include "agent/link/kept_recordings.h"

#include <catch2/catch.hpp>

#include "model.h"

using namespace flamewire;
using namespace flamewire::agent;

namespace {

constexpr std::size_t large = 1U << 20;
constexpr wire::RecordingId first{1}, second{2};

void push(KeptRecordings& recordings, Source& source, const wire::RecordingId& id) {
    wire::Batch batch = source.next();
    batch.recording_id = id;
    recordings.push(std::move(batch), periods);
}

}  // namespace

TEST_CASE("the oldest recording is sent first, and dropped when the server has all of it") {
    KeptRecordings recordings(large);
    Source source(1), other(2);
    CHECK(recordings.empty());
    recordings.begin(first);
    recordings.begin(first);
    CHECK(recordings.sends_newest());
    push(recordings, source, first);
    push(recordings, other, second);  // it begins without being announced
    CHECK_FALSE(recordings.sends_newest());
    CHECK(recordings.sending().id == first);
    CHECK(recordings.newest().id == second);
    CHECK(recordings.batches() == 2);
    recordings.drop_finished();
    CHECK(recordings.sending().id == first);
    recordings.sending().spool.acknowledge(1);
    recordings.drop_finished();
    CHECK(recordings.sending().id == second);
    // The newest one stays, because it may continue.
    recordings.sending().spool.acknowledge(1);
    recordings.drop_finished();
    CHECK(recordings.sends_newest());
    CHECK(recordings.batches() == 0);
    CHECK(recordings.bytes() == 0);
}

TEST_CASE("earlier recordings are dropped as a whole if all together are too large") {
    Source source(1), other(2);
    KeptRecordings measured(large);
    push(measured, source, first);
    const std::size_t one_batch = measured.bytes();
    REQUIRE(one_batch > 0);

    KeptRecordings recordings(2 * one_batch + one_batch / 2);
    Source again(1);
    push(recordings, again, first);
    push(recordings, other, second);
    recordings.keep_within_bound();
    CHECK(recordings.sending().id == first);
    push(recordings, other, second);
    push(recordings, other, second);
    REQUIRE(recordings.bytes() > 2 * one_batch + one_batch / 2);
    recordings.keep_within_bound();
    CHECK(recordings.sending().id == second);
    CHECK(recordings.sends_newest());
}
