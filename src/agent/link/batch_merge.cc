#include "agent/link/batch_merge.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "counters/readings.h"

namespace flamewire::agent {
namespace {

using wire::Batch;
using wire::Id;

template <class T>
void append(std::vector<T>& to, std::vector<T>& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

template <class T>
bool continues(Id older_base, const std::vector<T>& older, Id newer_base, const std::vector<T>& newer) {
    return older.empty() || newer.empty() || older_base + older.size() == newer_base;
}

template <class T>
bool fits(const std::vector<T>& older, const std::vector<T>& newer, std::size_t limit) {
    return older.size() + newer.size() <= limit / 2;
}

template <class T>
void join_table(Id& base, std::vector<T>& entries, Id newer_base, std::vector<T>& newer) {
    if (entries.empty()) base = newer_base;
    append(entries, newer);
}

// Keeps one entry per (reason, event, cpu), so that losses do not pile up while the spool is full for days.
void fold_losses(std::vector<wire::Loss>& losses) {
    std::vector<wire::Loss> folded;
    for (const wire::Loss& loss : losses) {
        const auto same = std::find_if(folded.begin(), folded.end(), [&](const wire::Loss& other) {
            return other.reason == loss.reason && other.event == loss.event && other.cpu_plus_1 == loss.cpu_plus_1;
        });
        if (same == folded.end()) {
            folded.push_back(loss);
            continue;
        }
        same->count += loss.count;
        same->first_ns = std::min(same->first_ns, loss.first_ns);
        same->last_ns = std::max(same->last_ns, loss.last_ns);
    }
    losses = std::move(folded);
}

// Entries count from the start of the recording, so the newer one of a process replaces the older one.
void join_unwinds(std::vector<wire::ProcessUnwind>& unwinds, std::vector<wire::ProcessUnwind>& newer) {
    std::vector<Id> known;
    known.reserve(newer.size());
    for (const wire::ProcessUnwind& unwind : newer) known.push_back(unwind.process);
    std::sort(known.begin(), known.end());
    std::erase_if(unwinds, [&](const wire::ProcessUnwind& unwind) {
        return std::binary_search(known.begin(), known.end(), unwind.process);
    });
    append(unwinds, newer);
}

// Limits of counter readings. While the server is away, two arrive per second for days, so they are merged into longer
// ones.
constexpr std::size_t max_readings = 512, max_counter_values = 65'536;

// Merges contiguous thread times, so that each thread has one time span while the server is away.
void join_times(std::vector<wire::ThreadTimes>& times, std::vector<wire::ThreadTimes>& newer) {
    append(times, newer);
    std::vector<std::uint32_t> places;  // by thread: index into times plus 1
    std::size_t kept = 0;
    for (std::size_t i = 0; i < times.size(); ++i) {
        if (times[i].thread >= places.size()) places.resize(times[i].thread + 1);
        std::uint32_t& place = places[times[i].thread];
        if (place != 0 && times[place - 1].end_ns == times[i].end_ns - times[i].length_ns()) {
            times[place - 1].add(times[i]);
            continue;
        }
        place = static_cast<std::uint32_t>(kept + 1);
        if (kept != i) times[kept] = std::move(times[i]);
        ++kept;
    }
    times.resize(kept);
}

// Losses that cover the rows: one per event, all with `reason`.
std::vector<wire::Loss> losses_of_rows(const Batch& batch, wire::LossReason reason) {
    std::map<Id, wire::Loss> by_event;
    for (const wire::Row& row : batch.rows) {
        const std::uint64_t begin = row.bucket * batch.bucket_ns, end = begin + batch.bucket_ns - 1;
        auto [entry, is_new] = by_event.try_emplace(row.event, wire::Loss{reason, 0, begin, end, row.event, 0});
        wire::Loss& loss = entry->second;
        loss.count += row.count;
        loss.first_ns = std::min(loss.first_ns, begin);
        loss.last_ns = std::max(loss.last_ns, end);
    }
    std::vector<wire::Loss> losses;
    losses.reserve(by_event.size());
    for (const auto& [event, loss] : by_event) losses.push_back(loss);
    return losses;
}

void forget_coarsened(Batch& batch) {
    std::erase_if(batch.losses, [](const wire::Loss& loss) { return loss.reason == wire::LossReason::time_coarsened; });
}

// Keeps only their number. Hits take more space than rows.
void drop_hits(Batch& batch) {
    std::map<Id, std::uint64_t> dropped;  // by event
    for (const wire::Hits& hits : batch.hits) dropped[hits.event] += hits.dropped + hits.hits.size();
    batch.hits.clear();
    for (const auto& [event, count] : dropped) {
        wire::Hits& hits = batch.hits.emplace_back();
        hits.event = event;
        hits.dropped = count;
    }
}

void widen(Batch& batch, std::uint32_t bucket_ns) {
    const std::uint32_t factor = bucket_ns / batch.bucket_ns;
    for (wire::Row& row : batch.rows) row.bucket /= factor;
    batch.bucket_ns = bucket_ns;
}

}  // namespace

std::uint64_t samples_in(const Batch& batch) {
    std::uint64_t samples = 0;
    for (const wire::Row& row : batch.rows) samples += row.count;
    return samples;
}

std::uint64_t lost_in(const Batch& batch) {
    std::uint64_t lost = 0;
    for (const wire::Loss& loss : batch.losses) {
        switch (loss.reason) {
            case wire::LossReason::throttled:
            case wire::LossReason::stack_truncated:
            case wire::LossReason::maps_lost:
            case wire::LossReason::unknown_process:
            case wire::LossReason::time_coarsened:
            case wire::LossReason::thread_state_unknown:  // nanoseconds
                break;
            default: lost += loss.count;
        }
    }
    return lost;
}

bool is_bare(const Batch& batch) {
    return batch.rows.empty() && batch.strings.empty() && batch.modules.empty() && batch.locations.empty() &&
           batch.stacks.empty() && batch.processes.empty() && batch.threads.empty() && batch.events.empty() &&
           batch.lifecycle.empty() && batch.symbols.empty() && batch.unwinds.empty() && batch.counters.empty() &&
           batch.thread_times.empty() && batch.hits.empty() &&
           std::none_of(batch.losses.begin(), batch.losses.end(),
                        [](const wire::Loss& loss) { return loss.event != 0; });
}

bool can_merge(const Batch& older, const Batch& newer) {
    if (older.epoch != newer.epoch && !is_bare(older) && !is_bare(newer)) return false;
    using wire::max_batch_entries;
    using wire::max_batch_rows;
    return continues(older.string_base, older.strings, newer.string_base, newer.strings) &&
           continues(older.module_base, older.modules, newer.module_base, newer.modules) &&
           continues(older.location_base, older.locations, newer.location_base, newer.locations) &&
           continues(older.stack_base, older.stacks, newer.stack_base, newer.stacks) &&
           continues(older.process_base, older.processes, newer.process_base, newer.processes) &&
           continues(older.thread_base, older.threads, newer.thread_base, newer.threads) &&
           continues(older.event_base, older.events, newer.event_base, newer.events) &&
           fits(older.strings, newer.strings, max_batch_entries) &&
           fits(older.modules, newer.modules, max_batch_entries) &&
           fits(older.locations, newer.locations, max_batch_rows) && fits(older.stacks, newer.stacks, max_batch_rows) &&
           fits(older.processes, newer.processes, max_batch_entries) &&
           fits(older.threads, newer.threads, max_batch_entries) && fits(older.rows, newer.rows, max_batch_rows) &&
           fits(older.lifecycle, newer.lifecycle, max_batch_entries) &&
           fits(older.losses, newer.losses, max_batch_entries) &&
           fits(older.symbols, newer.symbols, max_batch_entries) &&
           fits(older.notices, newer.notices, max_batch_entries) &&
           fits(older.unwinds, newer.unwinds, max_batch_entries) &&
           fits(older.counters, newer.counters, max_batch_entries) &&
           fits(older.thread_times, newer.thread_times, max_batch_entries) &&
           fits(older.hits, newer.hits, max_batch_entries);
}

Batch merge(Batch older, Batch newer, std::uint32_t bucket_ns) {
    const bool coarser =
        (!older.rows.empty() && older.bucket_ns != bucket_ns) || (!newer.rows.empty() && newer.bucket_ns != bucket_ns);
    widen(older, bucket_ns);
    widen(newer, bucket_ns);

    Batch merged = std::move(older);
    if (merged.first_seq == 0) merged.first_seq = merged.seq;
    merged.seq = newer.seq;
    if (is_bare(merged) || !is_bare(newer)) merged.epoch = newer.epoch;
    merged.monotonic_ns = newer.monotonic_ns;
    merged.realtime_ns = newer.realtime_ns;
    if (newer.recording) merged.recording = std::move(newer.recording);
    join_table(merged.string_base, merged.strings, newer.string_base, newer.strings);
    join_table(merged.module_base, merged.modules, newer.module_base, newer.modules);
    join_table(merged.location_base, merged.locations, newer.location_base, newer.locations);
    join_table(merged.stack_base, merged.stacks, newer.stack_base, newer.stacks);
    join_table(merged.process_base, merged.processes, newer.process_base, newer.processes);
    join_table(merged.thread_base, merged.threads, newer.thread_base, newer.threads);
    join_table(merged.event_base, merged.events, newer.event_base, newer.events);
    append(merged.rows, newer.rows);
    append(merged.hits, newer.hits);
    if (coarser) drop_hits(merged);
    append(merged.lifecycle, newer.lifecycle);
    append(merged.losses, newer.losses);
    append(merged.symbols, newer.symbols);
    append(merged.notices, newer.notices);
    join_unwinds(merged.unwinds, newer.unwinds);
    append(merged.counters, newer.counters);
    counters::shorten(merged.counters, max_readings, max_counter_values);
    join_times(merged.thread_times, newer.thread_times);
    if (newer.agent) merged.agent = newer.agent;
    if (newer.end) merged.end = std::move(newer.end);
    if (coarser) {
        forget_coarsened(merged);
        std::vector<wire::Loss> coarsened = losses_of_rows(merged, wire::LossReason::time_coarsened);
        append(merged.losses, coarsened);
    }
    fold_losses(merged.losses);
    return merged;
}

void rows_to_losses(Batch& batch, wire::LossReason reason) {
    drop_hits(batch);
    if (batch.rows.empty()) return;
    forget_coarsened(batch);
    std::vector<wire::Loss> losses = losses_of_rows(batch, reason);
    append(batch.losses, losses);
    fold_losses(batch.losses);
    batch.rows.clear();
    batch.bucket_ns = wire::default_bucket_ns;
}

void drop_tables(Batch& batch) {
    batch.strings.clear();
    batch.modules.clear();
    batch.locations.clear();
    batch.stacks.clear();
    batch.processes.clear();
    batch.threads.clear();
    batch.events.clear();
    batch.lifecycle.clear();
    batch.symbols.clear();
    batch.unwinds.clear();
    batch.counters.clear();
    batch.thread_times.clear();
    batch.hits.clear();
    for (wire::Loss& loss : batch.losses) loss.event = 0;
    fold_losses(batch.losses);
}

}  // namespace flamewire::agent
