// Lists of readings that wait (for a link that is away) made shorter without changing any sum. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "wire/batch.h"

namespace flamewire::counters {

// Two readings that follow each other in one scope (all of the target, by thread, by CPU) become one over both times,
// again and again until no more than `max_readings` with `max_values` in all are left, or none can be joined. Readings
// on the two sides of a gap stay apart. All ids must be of one epoch.
void shorten(std::vector<wire::CounterReading>& readings, std::size_t max_readings, std::size_t max_values);

}  // namespace flamewire::counters
