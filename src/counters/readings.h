// Shortens lists of readings that are queued while a link is down, without changing any sum. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "wire/batch.h"

namespace flamewire::counters {

// Joins pairs of consecutive readings of one scope (whole target, by thread, by CPU) into one over both times. Repeats
// until at most `max_readings` with `max_values` in total are left, or none can be joined. Readings on both sides of a
// gap stay separate. All ids must be of one epoch.
void shorten(std::vector<wire::CounterReading>& readings, std::size_t max_readings, std::size_t max_values);

}  // namespace flamewire::counters
