// Imports perf.data files (perf record, simpleperf record): samples with times, threads, CPUs and weights; call chains,
// branch-record stacks, and copied stacks, which are unwound here; losses; the start and exit of processes.
#pragma once

#include <string_view>

#include "base/result.h"
#include "profile/formats/import.h"

namespace flamewire::profile::perf_data {

bool recognises(std::string_view beginning);
Result<bool> import_perf_data(ImportJob& job);

}  // namespace flamewire::profile::perf_data
