// Samples that wait for their user call chain, which is in a later record (PERF_RECORD_CALLCHAIN_DEFERRED).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "profile/formats/perf_data/sample.h"
#include "profile/formats/recording_builder.h"

namespace flamewire::profile::perf_data {

class DeferredSamples {
public:
    struct Waiting {
        Sample sample;                         // only what does not point into a record
        std::vector<std::uint64_t> callchain;  // up to the marker of the user part
        wire::Row row;                         // without its event, weight and stack
        std::vector<SamplePeriods::Part> parts;
    };

    // `cookie` is at the end of the sample's call chain.
    void add(std::uint64_t cookie, const Sample& sample, const wire::Row& row,
             const std::vector<SamplePeriods::Part>& parts);
    // Too many samples wait, for example because the records for them were lost.
    [[nodiscard]] bool full() const;
    // Removes the samples with this cookie.
    std::vector<Waiting> take(std::uint64_t cookie);
    std::vector<Waiting> take_all();

private:
    std::map<std::uint64_t, std::vector<Waiting>> waiting_;  // by cookie
    std::size_t count_ = 0, entries_ = 0;                    // of all samples and of their call chains
};

}  // namespace flamewire::profile::perf_data
