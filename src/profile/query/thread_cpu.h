// How much CPU time threads used in a range of time. Uses the best source that a session has: the threads' own
// task-clock counters, the time that clock samples stand for, or their share of what was counted for the whole target.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "profile/query/query.h"

namespace flamewire::profile {

enum class CpuSource : std::uint8_t { none, counted, clock_samples, share };

struct ThreadCpu {
    double percent = 0;  // of one CPU
    CpuSource source = CpuSource::none;
};

// For the threads of `rows`, which must be the answer to `filter`. Threads without any source are omitted. The range is
// the known part of the filter's range, from `session_start_ns` on. A share is relative to all of `rows`, so `rows`
// should hold all threads.
std::unordered_map<ThreadId, ThreadCpu> thread_cpu(const Store& store, const Filter& filter,
                                                   const std::vector<ThreadRow>& rows, std::uint64_t session_start_ns);

}  // namespace flamewire::profile
