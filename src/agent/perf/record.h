// What the agent makes of the records of perf_event_open: those of perf/record.h, and of a sample also what its event
// says about it. A record is a view into the ring (or into a copy of a wrapped record), valid only during the call that
// delivers it.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "perf/record.h"
#include "perf/tracepoint_format.h"
#include "wire/batch.h"

namespace flamewire::agent {

using perf::CommRecord;
using perf::KsymbolRecord;
using perf::LostRecord;
using perf::MmapRecord;
using perf::SwitchRecord;
using perf::TaskRecord;
using perf::ThrottleRecord;

struct SampleRecord : perf::Sample {
    wire::StackMode mode = wire::StackMode::fp;  // how to find the user's stack
    bool copy_omitted = false;                   // the process has stack copies, but not for this event

    bool at_next_instruction = false;  // the address is that of the next instruction (EventPart of a breakpoint)

    const perf::ValueFields* values = nullptr;  // of a traced event: how to read them

    // For a wake-up: the woken thread, …
    std::uint32_t woken_tid = 0;  // 0: not a wake-up
    bool by_interrupt = false;    // … whether an interrupt woke it, not the thread that it interrupted, …
    bool of_cpu = false;          // … and whether the event belongs to a CPU, next to those of the target's threads
};

using Record = std::variant<SampleRecord, MmapRecord, CommRecord, TaskRecord, LostRecord, ThrottleRecord, SwitchRecord,
                            KsymbolRecord>;

// Receives records in time order, on the thread that drains. `event`: the index into EventSetOptions::choice.events of
// the event that wrote the record. A sample has one; a loss or a throttle with an unknown id has none.
class RecordSink {
public:
    virtual void on_record(const Record& record, std::optional<std::uint32_t> event) = 0;

protected:
    ~RecordSink() = default;
};

}  // namespace flamewire::agent
