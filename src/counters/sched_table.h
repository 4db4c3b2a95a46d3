// The table of `--stat sched` and `report --sched`: what threads did with their time, why they left their CPUs, how long they
// waited for one and how long they kept it. Pure; used by the agent and at the desk.
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

// In the lines' order, which is cut to `most` (0: all), with a line for all together. Names without control characters.
// Groups of columns that a terminal of that `width` (0: none) has no room for are left out, which a last line says.
std::string sched_table(const std::vector<const SchedLine*>& lines, std::size_t most = 0, std::size_t width = 0);

}  // namespace flamewire::counters
