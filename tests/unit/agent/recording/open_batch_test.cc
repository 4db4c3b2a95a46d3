#include "agent/recording/open_batch.h"

#include <catch2/catch.hpp>

#include "agent/process/process_table.h"

using namespace flamewire;
using namespace flamewire::agent;

TEST_CASE("an open batch passes everything to the folder and knows whether it has content") {
    ProcessTable processes;
    Folder folder({}, processes);
    OpenBatch batch(folder);
    batch.add_symbols({});
    batch.add_notices({});
    CHECK_FALSE(batch.has_content());
    batch.add_notice("test-notice", "Nothing happened", "nothing");
    CHECK(batch.has_content());
    wire::Batch closed = folder.close_batch();
    batch.begin();
    CHECK_FALSE(batch.has_content());
    CHECK(closed.notices == std::vector<wire::Notice>{{"test-notice", "Nothing happened", "nothing"}});

    batch.add_loss({wire::LossReason::ring_full, 7, 1, 2, 0, 0});
    CHECK(batch.has_content());
    closed = folder.close_batch();
    batch.begin();
    REQUIRE(closed.losses.size() == 1);
    CHECK(closed.losses.front().count == 7);
    batch.mark();
    CHECK(batch.has_content());
}

TEST_CASE("an open batch is full at half of the rows of a batch") {
    ProcessTable processes;
    Folder folder({}, processes);
    OpenBatch batch(folder);
    for (std::uint64_t i = 1; i < OpenBatch::max_samples; ++i) batch.add_sample();
    CHECK_FALSE(batch.full());
    batch.add_sample();
    CHECK(batch.full());
    batch.begin();
    CHECK_FALSE(batch.full());
}
