// The table of `--stat sched` and `report --sched`: how threads spent their time, why they left their CPUs, how long
// they waited for a CPU and how long they kept it. Pure; used by the agent and by `report`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wire/batch.h"

namespace flamewire::counters {

struct SchedLine {
    std::string name;
    std::uint32_t tid = 0;
    wire::ThreadTimes times;  // its thread and end are not used
};

// Keeps the order of `lines` and prints at most `most` of them (0: all), then a total over all threads. Control
// characters in names are replaced. Column groups that do not fit into a terminal of `width` columns (0: no terminal)
// are omitted, and a last line reports that.
std::string sched_table(const std::vector<const SchedLine*>& lines, std::size_t most = 0, std::size_t width = 0);

}  // namespace flamewire::counters
