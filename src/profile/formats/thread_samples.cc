#include "profile/formats/thread_samples.h"

#include <algorithm>
#include <utility>

namespace flamewire::profile {

std::vector<EventId> events_of(const Store& store, const Filter& filter) {
    if (filter.event) return {*filter.event};
    std::vector<EventId> events;
    for (EventId event = 1; event < store.tables().events.size(); ++event) events.push_back(event);
    return events;
}

std::vector<ThreadSamples> thread_samples(const Store& store, Filter filter, EventId event) {
    const Store::Tables& tables = store.tables();
    filter.event = event;
    std::vector<ThreadSamples> threads(tables.threads.size());
    for (ThreadId thread = 0; thread < threads.size(); ++thread) threads[thread].thread = thread;
    tables.rows.for_each(select(tables, filter).rows, [&](const RowChunk& chunk, const Row& row) {
        threads[row.lane.thread].samples.push_back({row.bucket * chunk.bucket_ns, row.stack, {row.count, row.weight}});
    });
    std::erase_if(threads, [](const ThreadSamples& one) { return one.samples.empty(); });
    for (ThreadSamples& one : threads)
        std::ranges::sort(one.samples, {},
                          [](const ThreadSample& sample) { return std::pair(sample.time_ns, sample.stack); });
    return threads;
}

std::optional<std::size_t> busiest_thread(const Store& store, const Filter& filter) {
    const Store::Tables& tables = store.tables();
    for (const EventId event : events_of(store, filter)) {
        Filter one = filter;
        one.event = event;
        std::vector<std::uint64_t> samples(tables.threads.size());
        tables.rows.for_each(select(tables, one).rows,
                             [&](const RowChunk&, const Row& row) { samples[row.lane.thread] += row.count; });
        std::erase(samples, 0);  // thread_samples() omits them, too
        if (!samples.empty()) return static_cast<std::size_t>(std::ranges::max_element(samples) - samples.begin());
    }
    return std::nullopt;
}

}  // namespace flamewire::profile
