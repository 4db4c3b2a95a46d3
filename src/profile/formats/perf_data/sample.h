// One decoded sample. Its event's attribute determines the layout (linux/perf_event.h, PERF_RECORD_SAMPLE).
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "profile/formats/perf_data/event_ids.h"
#include "profile/formats/perf_data/header.h"
#include "profile/formats/perf_data/record_order.h"
#include "unwind/walk/branch_stack.h"

namespace flamewire::profile::perf_data {

// The value of a counter at the sample.
struct CounterValue {
    std::uint64_t value = 0, id = 0;
};

struct Sample {
    std::uint16_t attribute = 0, misc = 0;
    std::uint64_t ip = 0, time_ns = 0, id = 0, period = 0;
    std::uint32_t pid = 0, tid = 0, cpu = 0;
    std::vector<CounterValue> values;      // PERF_SAMPLE_READ: the event's counter, or those of its whole group
    std::vector<std::uint64_t> callchain;  // as the kernel wrote it, with context markers
    std::vector<unwind::Branch> branches;  // newest first
    std::uint64_t registers_abi = 0;       // enum perf_sample_regs_abi
    std::vector<std::uint64_t> registers;
    Bytes stack;             // the copied part; a view into the record
    bool stack_cut = false;  // the copy fills the reserved space, so the stack continues beyond it
};

// False: the record is shorter than its fields. Reuses `sample`.
bool parse_sample(const Header& header, const Record& record, Sample& sample);

// Splits a sample into periods per event. A sample of a group's leader with the values of the whole group counts for
// every event of the group. The period is the increase of the event's counter since the last sample.
class SamplePeriods {
public:
    explicit SamplePeriods(const Header& header) : header_(header), ids_(header.attributes) {}

    struct Part {
        std::uint16_t attribute = 0;
        std::uint64_t period = 0;
    };
    // Valid until the next call.
    const std::vector<Part>& parts_of(const Sample& sample);
    [[nodiscard]] std::uint64_t unknown_ids() const { return unknown_ids_; }

private:
    const Header& header_;
    EventIds ids_;
    std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint64_t> seen_;  // values by id and, inherited, thread
    std::vector<Part> parts_;
    std::uint64_t unknown_ids_ = 0;
};

}  // namespace flamewire::profile::perf_data
