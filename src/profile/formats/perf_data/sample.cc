#include "profile/formats/perf_data/sample.h"

#include "perf/abi.h"

namespace flamewire::profile::perf_data {

const std::vector<SamplePeriods::Part>& SamplePeriods::parts_of(const Sample& sample) {
    const RecordedEvent& event = header_.events[sample.event];
    parts_.clear();
    if (!event.samples(perf::sample::read) || (event.read_format & perf::read_format::id) == 0) {
        parts_.push_back({sample.event, sample.period});
        return parts_;
    }
    perf::counter_values(sample, event.format(), values_);
    for (const perf::CounterValue& value : values_) {
        const auto counted = ids_.find(value.id);
        if (!counted) {
            ++unknown_ids_;
            continue;
        }
        std::uint64_t& before = seen_[{value.id, event.inherit ? sample.tid : 0}];
        const std::uint64_t period = value.value - before;
        before = value.value;
        if (period != 0) parts_.push_back({*counted, period});
    }
    return parts_;
}

}  // namespace flamewire::profile::perf_data
