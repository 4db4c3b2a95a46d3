// A session as a perf.data file that `perf report` and `perf script` read, on any machine: names are in the file.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "profile/store/model.h"
#include "profile/store/store.h"

namespace flamewire::profile::perf_data {

struct ExportOptions {
    std::int64_t started_ns = 0;  // wall clock at the first sample; 0: not known
    // A row of n samples is n samples; in a session with more of them than this each row is one, with the period of all.
    std::uint64_t most_samples = 4'000'000;
};

// too_large: the file would have more than 2 GiB; says what to do.
Result<std::string> perf_data_file(const Store& store, const Filter& filter, const ExportOptions& options = {});

}  // namespace flamewire::profile::perf_data
