// One sample, decoded. Its layout is what its event's attribute says (linux/perf_event.h, PERF_RECORD_SAMPLE).
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

// What a counter had counted up to the sample.
struct CounterValue {
    std::uint64_t value = 0, id = 0;
};

struct Sample {
    std::uint16_t attribute = 0, misc = 0;
    std::uint64_t ip = 0, time_ns = 0, id = 0, period = 0;
    std::uint32_t pid = 0, tid = 0, cpu = 0;
    std::vector<CounterValue> values;      // PERF_SAMPLE_READ: of the event, or of its whole group
    std::vector<std::uint64_t> callchain;  // as the kernel wrote it, with its markers
    std::vector<unwind::Branch> branches;  // newest first
    std::uint64_t registers_abi = 0;       // enum perf_sample_regs_abi
    std::vector<std::uint64_t> registers;
    Bytes stack;             // as far as it was copied, in place
    bool stack_cut = false;  // the copy fills its room, so the stack goes on
};

// False: the record is shorter than it says. `sample` is used again and again.
bool parse_sample(const Header& header, const Record& record, Sample& sample);

// What one sample counts for. One of a group's leader with the values of the whole group is a sample of every event of
// the group, whose period is what its counter counted since the last one.
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
