// Pairs the begin and end events of a thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "profile/formats/chrome_events.h"

namespace flamewire::profile::chrome {

// Times are in microseconds.
struct Interval {
    double start = 0, end = 0;
    StringId name = 0;
    std::size_t order = 0;  // in order of their begin events
};

// In order of their starts; outer intervals precede inner ones. An interval without an end event ends with the last
// event. Adds the events without a counterpart to `unmatched`.
std::vector<Interval> intervals_of(std::vector<Span> spans, std::uint64_t& unmatched);

}  // namespace flamewire::profile::chrome
