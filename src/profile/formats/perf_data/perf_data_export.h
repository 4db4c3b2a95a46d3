// Exports a session as a perf.data file that `perf report` and `perf script` read on any machine: the names are in the
// file.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "profile/store/model.h"
#include "profile/store/store.h"

namespace flamewire::profile::perf_data {

struct ExportOptions {
    std::int64_t started_ns = 0;  // wall clock at the first sample; 0: unknown
    // A row of n samples becomes n samples. In a session with more samples than this, each row becomes one sample with
    // the total period.
    std::uint64_t most_samples = 4'000'000;
};

// too_large: the file would exceed 2 GiB. The message gives remedies.
Result<std::string> perf_data_file(const Store& store, const Filter& filter, const ExportOptions& options = {});

}  // namespace flamewire::profile::perf_data
