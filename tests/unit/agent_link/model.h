// A source of batches and a server that counts what arrives, for the tests of spool and link.
#pragma once

#include <catch2/catch.hpp>

#include <map>
#include <random>
#include <string>

#include "agent/link/batch_merge.h"
#include "wire/batch.h"
#include "wire/frame.h"

namespace flamewire::agent {

using wire::Batch;

inline const wire::EventPeriods periods{0, 10, 20};

// A model of the server: it decodes frames with its own periods, drops those that it has, and requires the right order.
struct ModelServer {
    std::uint64_t last_seq = 0, epoch = 0, shown = 0, lost = 0, refused = 0;
    wire::EventPeriods known;
    std::map<std::uint64_t, std::uint64_t> strings_of_epoch;

    void receive(const std::string& frame) {
        const Bytes bytes = as_bytes_view(frame);
        const wire::FrameHeader header = wire::decode_header(bytes.first<wire::header_bytes>());
        REQUIRE(header.payload_bytes == frame.size() - wire::header_bytes);
        const auto raw = wire::batch_bytes(header.flag, bytes.subspan(wire::header_bytes));
        REQUIRE(raw);
        const auto peeked = wire::peek_header(as_bytes_view(*raw));
        REQUIRE(peeked);
        if (peeked->seq <= last_seq) return;
        const std::uint64_t first = peeked->first_seq == 0 ? peeked->seq : peeked->first_seq;
        REQUIRE(first == last_seq + 1);
        REQUIRE(peeked->epoch >= epoch);
        if (peeked->epoch != epoch) known.clear();
        epoch = peeked->epoch;
        const auto batch = wire::decode(as_bytes_view(*raw), known);
        if (!batch) FAIL(batch.error().message);
        // Tables arrive without holes, and rows refer only to entries that arrived.
        std::uint64_t& strings = strings_of_epoch[epoch];
        if (!batch->strings.empty()) {
            REQUIRE(batch->string_base == strings + 1);
            strings += batch->strings.size();
        }
        for (const wire::Row& row : batch->rows) REQUIRE(row.stack <= strings);
        last_seq = batch->seq;
        shown += samples_in(*batch);
        lost += lost_in(*batch);
    }
};

// Generates batches. Each adds strings, and rows use the string ids as their stack ids.
struct Source {
    std::mt19937_64 random;
    std::uint64_t seq = 0;
    std::uint64_t samples = 0;     // in rows and in its own losses
    std::uint64_t own_losses = 0;  // the part in losses
    std::uint32_t epoch = 1;
    wire::Id next_string = 1;

    explicit Source(std::uint64_t seed) : random(seed) {}

    void begin_epoch() {
        ++epoch;
        next_string = 1;
    }

    Batch next() {
        Batch batch;
        batch.recording_id[3] = 9;
        batch.epoch = epoch;
        batch.seq = ++seq;
        batch.monotonic_ns = seq * 250'000'000;
        if (next_string == 1) batch.events = {{1, 2, 0, 10}, {1, 2, 0, 20}};
        batch.string_base = next_string;
        for (std::uint64_t n = random() % 4 + (next_string == 1 ? 1 : 0); n-- > 0;) {
            std::string text;
            for (std::uint64_t k = 5 + random() % 20; k-- > 0;) text.push_back(static_cast<char>(random()));
            batch.strings.push_back(text);
        }
        next_string += static_cast<wire::Id>(batch.strings.size());
        for (std::uint64_t n = random() % 60; n-- > 0;) {
            const auto count = static_cast<std::uint32_t>(1 + random() % 3);
            const auto event = static_cast<wire::Id>(1 + random() % 2);
            const auto stack = static_cast<wire::Id>(random() % next_string);
            batch.rows.push_back({seq * 25 + random() % 25, event, static_cast<wire::Id>(random() % 3), 0, stack, count,
                                  count * periods[event]});
            samples += count;
        }
        if (random() % 4 == 0) {
            batch.losses.push_back({wire::LossReason::ring_full, 3, 1, 2, 1, 0});
            samples += 3;
            own_losses += 3;
        }
        if (random() % 5 == 0) batch.lifecycle.push_back({wire::LifecycleKind::fork, 5, 1, 0});
        return batch;
    }
};

}  // namespace flamewire::agent
