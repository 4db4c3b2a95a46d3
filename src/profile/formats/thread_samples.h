// The rows of each event and thread in time order, for formats with one profile per event and thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "profile/query/accumulate.h"
#include "profile/store/store.h"

namespace flamewire::profile {

struct ThreadSample {
    std::uint64_t time_ns = 0;  // start of the bucket
    StackId stack = 0;
    Weight weight;
};
struct ThreadSamples {
    ThreadId thread = 0;
    std::vector<ThreadSample> samples;  // at least one
};

// The events that the filter selects: one, or all.
[[nodiscard]] std::vector<EventId> events_of(const Store& store, const Filter& filter);

// The threads that have samples of this event under the filter, ordered by id.
[[nodiscard]] std::vector<ThreadSamples> thread_samples(const Store& store, Filter filter, EventId event);

// The index of the thread that a viewer shows first, counting threads event by event: the thread with the most samples
// of the first event that has any.
[[nodiscard]] std::optional<std::size_t> busiest_thread(const Store& store, const Filter& filter);

}  // namespace flamewire::profile
