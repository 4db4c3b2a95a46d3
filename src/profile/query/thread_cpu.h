// How much CPU threads used in a stretch of time, from the best that a session has: their own task-clock counters, the
// time that samples of a clock stand for, or their part of what was counted for the whole target.
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

// Of the threads of `rows`, which are the answer to `filter`; those without any source are not in it. The range is what
// is known of the filter's from `session_start_ns` on. A share is of `rows` as a whole, so they should be all threads.
std::unordered_map<ThreadId, ThreadCpu> thread_cpu(const Store& store, const Filter& filter,
                                                   const std::vector<ThreadRow>& rows, std::uint64_t session_start_ns);

}  // namespace flamewire::profile
