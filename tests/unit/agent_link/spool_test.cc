// The spool compared with a model: whatever is pushed, cut, acknowledged and squeezed, every sample is counted exactly
// once, in a row or a loss.
#include "agent/link/spool.h"

#include <catch2/catch.hpp>

#include <random>

#include "model.h"

using namespace flamewire;
using namespace flamewire::agent;

namespace {

void send_all(Spool& spool, ModelServer& server) {
    while (const SpooledBatch* batch = spool.next()) server.receive(batch->frame);
}

}  // namespace

TEST_CASE("batches leave in order, are resent byte for byte, and are removed when acknowledged") {
    Source source(1);
    Spool spool(1U << 20);
    for (int i = 0; i < 3; ++i) spool.push(source.next(), periods);
    REQUIRE(spool.unsent() == 3);
    const SpooledBatch first = *spool.next();
    CHECK(first.seq == 1);
    CHECK(first.sent);
    CHECK(spool.next()->seq == 2);
    CHECK(spool.unsent() == 1);
    spool.acknowledge(1);
    CHECK(spool.unsent() == 1);
    CHECK(spool.batches().front().seq == 2);

    CHECK_FALSE(spool.resume_after(1));
    CHECK(spool.unsent() == 2);
    CHECK(spool.next()->seq == 2);
    CHECK_FALSE(spool.resume_after(2));
    CHECK(spool.next()->seq == 3);
    CHECK(spool.next() == nullptr);
    spool.acknowledge(99);
    CHECK(spool.empty());
    CHECK(spool.bytes() == 0);
    CHECK(spool.in_flight_bytes() == 0);
    CHECK(spool.acknowledged_seq() == 3);
}

TEST_CASE("at the limit, unsent batches shrink and sent ones stay unchanged") {
    Source source(2);
    ModelServer server;
    Spool spool(4000);
    for (int i = 0; i < 5; ++i) spool.push(source.next(), periods);
    const std::string sent = spool.next()->frame;
    server.receive(sent);
    for (int i = 0; i < 400; ++i) {
        if (i % 90 == 89) source.begin_epoch();
        spool.push(source.next(), periods);
        // The tables of the current epoch alone may exceed the limit. Nothing else may.
        const SpooledBatch& newest = spool.batches().back();
        CHECK((spool.bytes() <= 4000 || newest.samples == 0));
        CHECK(spool.batches().front().frame == sent);
    }
    send_all(spool, server);
    CHECK(server.shown + server.lost == source.samples);
    CHECK(server.lost > 0);
    CHECK(server.last_seq == source.seq);
}

TEST_CASE("random cuts, acknowledgments and overflows lose no count") {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        CAPTURE(seed);
        Source source(seed);
        std::mt19937_64 random(seed * 77);
        ModelServer server;
        Spool spool(seed % 3 == 0 ? std::size_t{1} << 20 : 3000 + random() % 9000);
        bool connected = true;
        for (int step = 0; step < 600; ++step) {
            const std::uint64_t draw = random() % 100;
            if (draw < 45) {
                spool.push(source.next(), periods);
            } else if (draw < 75 && connected) {
                if (const SpooledBatch* batch = spool.next()) server.receive(batch->frame);
            } else if (draw < 85 && connected) {
                spool.acknowledge(server.last_seq);
            } else if (draw < 95) {
                // The connection is cut. Sent batches may have arrived or not. These batches are sent but lost:
                if (connected && draw < 90)
                    while (random() % 3 != 0 && spool.next() != nullptr) {
                    }
                connected = !connected;
                if (connected) REQUIRE_FALSE(spool.resume_after(server.last_seq));
            } else if (draw < 96) {
                source.begin_epoch();
            }
            REQUIRE(server.shown + server.lost <= source.samples);
        }
        REQUIRE_FALSE(spool.resume_after(server.last_seq));
        send_all(spool, server);
        REQUIRE(server.last_seq == source.seq);
        REQUIRE(server.shown + server.lost == source.samples);
        if (seed % 3 == 0) REQUIRE(server.shown * 20 > source.samples * 15);
        spool.acknowledge(server.last_seq);
        REQUIRE(spool.bytes() == 0);
    }
}

TEST_CASE("a server without the acknowledged batches gets a new epoch and a recorded loss") {
    Source source(5);
    ModelServer first, second;
    Spool spool(1U << 20);
    for (int i = 0; i < 6; ++i) spool.push(source.next(), periods);
    send_all(spool, first);
    spool.acknowledge(4);

    // Batches 5 and 6 depend on 1 to 4, which the second server does not have.
    REQUIRE(spool.resume_after(0));
    spool.push(source.next(), periods);  // still of the old epoch, because the folder has not started the new one yet
    source.begin_epoch();
    spool.push(source.next(), periods);
    const std::uint64_t before = source.samples;
    send_all(spool, second);
    CHECK(second.last_seq == 8);
    CHECK(second.shown + second.lost == before);
    CHECK(second.shown > 0);
    CHECK(second.lost > 0);
    // The new epoch is complete, so no other one is needed.
    CHECK_FALSE(spool.resume_after(second.last_seq));
}

TEST_CASE("the same with an empty spool") {
    Source source(6);
    ModelServer first, second;
    Spool spool(1U << 20);
    for (int i = 0; i < 3; ++i) spool.push(source.next(), periods);
    send_all(spool, first);
    spool.acknowledge(3);
    REQUIRE(spool.empty());
    REQUIRE(spool.resume_after(0));
    // Back to the first server before anything was sent: it has all batches, so there is no loss.
    CHECK(spool.resume_after(3));
    CHECK(spool.resume_after(0));
    source.begin_epoch();
    spool.push(source.next(), periods);
    send_all(spool, second);
    CHECK(second.last_seq == 4);
    CHECK(second.shown + second.lost == source.samples);
}
