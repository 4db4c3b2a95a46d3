// What formats with a profile for each event and thread write: its rows in the order of their times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "profile/query/accumulate.h"
#include "profile/store/store.h"

namespace flamewire::profile {

struct ThreadSample {
    std::uint64_t time_ns = 0;  // of the bucket's beginning
    StackId stack = 0;
    Weight weight;
};
struct ThreadSamples {
    ThreadId thread = 0;
    std::vector<ThreadSample> samples;  // at least one
};

// The events that the filter asks for: its one, or all.
[[nodiscard]] std::vector<EventId> events_of(const Store& store, const Filter& filter);

// The threads that have samples of this event under the filter, by their ids.
[[nodiscard]] std::vector<ThreadSamples> thread_samples(const Store& store, Filter filter, EventId event);

// Where a viewer of them all, event by event, had better begin: the thread with most samples of the first event that has any.
[[nodiscard]] std::optional<std::size_t> busiest_thread(const Store& store, const Filter& filter);

}  // namespace flamewire::profile
