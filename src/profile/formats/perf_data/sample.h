// A sample of one of the file's events, and its periods.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "perf/decode.h"
#include "perf/record.h"
#include "profile/formats/perf_data/event_ids.h"
#include "profile/formats/perf_data/header.h"

namespace flamewire::profile::perf_data {

struct Sample : perf::Sample {
    // Where the user part of the call chain was, and whether it is whole.
    enum class UserPart : std::uint8_t {
        in_sample,
        deferred,      // in a later record
        deferred_cut,  // the same, as long as the kernel allows
        missing,       // no record has it
    };

    std::uint16_t event = 0;  // index into Header::events
    UserPart user_part = UserPart::in_sample;
};

// Splits a sample into periods per event. A sample of a group's leader with the values of the whole group counts for
// every event of the group. The period is the increase of the event's counter since the last sample.
class SamplePeriods {
public:
    // Both must outlive this.
    SamplePeriods(const Header& header, EventIds& ids) : header_(header), ids_(ids) {}

    struct Part {
        std::uint16_t event = 0;
        std::uint64_t period = 0;
    };
    // Valid until the next call.
    const std::vector<Part>& parts_of(const Sample& sample);
    [[nodiscard]] std::uint64_t unknown_ids() const { return unknown_ids_; }

private:
    const Header& header_;
    EventIds& ids_;
    std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint64_t> seen_;  // values by id and, inherited, thread
    std::vector<perf::CounterValue> values_;
    std::vector<Part> parts_;
    std::uint64_t unknown_ids_ = 0;
};

}  // namespace flamewire::profile::perf_data
