#include "agent/recording/batch_producer.h"

#include <catch2/catch.hpp>
#include <unistd.h>

#include "../recorded.h"
#include "base/clock.h"

using namespace flamewire;
using namespace flamewire::agent;

namespace {

struct NoRecords final : RecordSink {
    void on_record(const Record&, std::optional<std::uint32_t>) override {}
};

// The parts of a recording of this process that samples nothing.
struct Producing {
    ProcessTable processes;
    RecorderSnapshot snapshot;
    NoRecords records;
    MemorySink sink;
    RecorderMailbox mailbox;
    SamplerParts parts{
        {plan_for(static_cast<std::uint32_t>(::getpid())), {}, describe_machine()}, processes, snapshot, records};
    BatchProducer producer{parts, sink, mailbox};

    Producing() {
        FolderOptions folder;
        folder.events.resize(1);
        parts.folder.begin(std::move(folder));
        EventSetOptions options;
        options.targets = {{static_cast<std::uint32_t>(::getpid())}};
        const auto opened = parts.events.open(options);
        INFO((opened ? std::string() : opened.error().message));
        REQUIRE(opened.has_value());
        REQUIRE(parts.counters.open().has_value());
        producer.begin(monotonic_ns(), 0);
    }
    void add_samples(std::uint64_t count) {
        SampleRecord sample;
        sample.pid = sample.tid = static_cast<std::uint32_t>(::getpid());
        sample.time_ns = monotonic_ns();
        for (std::uint64_t i = 0; i < count; ++i) {
            parts.folder.add_sample(sample, 0);
            parts.batch.add_sample();
        }
    }
};

}  // namespace

TEST_CASE("samples for which a stuck link has no room are dropped and counted") {
    if (!perf_works()) return;
    Producing recording;
    recording.sink.refusals = 1'000;
    recording.add_samples(OpenBatch::max_samples - 1);
    recording.parts.batch.mark();
    recording.producer.produce(monotonic_ns());
    // The batch of the first round waits in the outbox; a new one is closed only when it is full.
    recording.add_samples(OpenBatch::max_samples - 1);
    recording.producer.produce(monotonic_ns());
    CHECK(recording.snapshot.accounting().samples_dropped == 0);
    recording.add_samples(1);
    recording.producer.produce(monotonic_ns());
    CHECK(recording.snapshot.accounting().samples_dropped == OpenBatch::max_samples);

    recording.sink.refusals = 0;
    recording.add_samples(5);
    recording.producer.produce_last();
    REQUIRE(recording.sink.batches.size() == 3);
    const wire::Batch& without_rows = recording.sink.batches[1];
    CHECK(without_rows.rows.empty());
    REQUIRE(without_rows.losses.size() == 1);
    CHECK(without_rows.losses.front().reason == wire::LossReason::queue_full);
    CHECK(without_rows.losses.front().count == OpenBatch::max_samples);
    CHECK(recording.sink.samples() == OpenBatch::max_samples - 1 + 5);
    CHECK(recording.sink.batches[2].end.has_value());
}
