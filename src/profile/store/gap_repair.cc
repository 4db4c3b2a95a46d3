#include "profile/store/gap_repair.h"

#include <algorithm>
#include <map>
#include <type_traits>
#include <utility>

namespace flamewire::profile {
namespace {

bool replace(wire::Id& id, std::optional<wire::Id> found) {
    if (found) id = *found;
    return found.has_value();
}

}  // namespace

void GapRepair::IdMap::clear() {
    runs_.clear();
    next_ = end_ = 1;
}

void GapRepair::IdMap::keep(wire::Id base, std::size_t entries) {
    // The store rejects batches that do not continue their tables.
    if (entries == 0 || base > next_) return;
    next_ = end_ = std::max(next_, static_cast<wire::Id>(base + entries));
    runs_.assign(1, {1, next_, 1});
}

void GapRepair::IdMap::add(wire::Id id) {
    const wire::Id to = next_++;
    end_ = id + 1;
    if (!runs_.empty() && runs_.back().end == id && runs_.back().to + (id - runs_.back().first) == to)
        ++runs_.back().end;
    else
        runs_.push_back({id, id + 1, to});
}

std::optional<wire::Id> GapRepair::IdMap::find(wire::Id id) const {
    if (id == 0) return 0;
    const auto behind = std::ranges::upper_bound(runs_, id, {}, &Run::first);
    if (behind == runs_.begin()) return std::nullopt;
    const Run& run = *std::prev(behind);
    if (id >= run.end) return std::nullopt;
    return run.to + (id - run.first);
}

void GapRepair::begin(std::uint32_t epoch, bool gap) {
    if (epoch != epoch_) {
        epoch_ = epoch;
        has_gaps_ = false;
        for (IdMap* ids : {&strings_, &modules_, &locations_, &stacks_, &processes_, &threads_, &events_}) ids->clear();
    }
    has_gaps_ = has_gaps_ || gap;
}

bool GapRepair::repair(wire::Module& entry) const { return replace(entry.path, strings_.find(entry.path)); }

bool GapRepair::repair(wire::Location& entry) const {
    return replace(entry.module, modules_.find(entry.module)) && replace(entry.name, strings_.find(entry.name)) &&
           replace(entry.file, strings_.find(entry.file));
}

bool GapRepair::repair(wire::StackNode& entry) const {
    return replace(entry.parent, stacks_.find(entry.parent)) &&
           replace(entry.location, locations_.find(entry.location));
}

bool GapRepair::repair(wire::Process& entry) const {
    for (wire::Id* text : {&entry.comm, &entry.exe, &entry.command_line, &entry.cgroup, &entry.container_id})
        *text = strings_.find(*text).value_or(0);
    return true;
}

bool GapRepair::repair(wire::Thread& entry) const {
    entry.comm = strings_.find(entry.comm).value_or(0);
    return replace(entry.process, processes_.find(entry.process));
}

bool GapRepair::repair(wire::Event& entry) const {
    return replace(entry.name, strings_.find(entry.name)) && replace(entry.unit, strings_.find(entry.unit));
}

bool GapRepair::repair(wire::Lifecycle& entry) const {
    entry.comm = strings_.find(entry.comm).value_or(0);
    return replace(entry.thread, threads_.find(entry.thread));
}

bool GapRepair::repair(wire::Symbol& entry) const {
    return replace(entry.module, modules_.find(entry.module)) && replace(entry.name, strings_.find(entry.name));
}

bool GapRepair::repair(wire::CounterValue& entry) const {
    return replace(entry.name, strings_.find(entry.name)) && replace(entry.unit, strings_.find(entry.unit)) &&
           replace(entry.part, strings_.find(entry.part)) && replace(entry.thread, threads_.find(entry.thread));
}

template <class Entry>
void GapRepair::repair_table(IdMap& ids, wire::Id& base, std::vector<Entry>& entries) {
    std::vector<Entry> usable;
    usable.reserve(entries.size());
    const wire::Id first = ids.next();
    for (std::size_t i = 0; i < entries.size(); ++i) {
        const auto id = static_cast<wire::Id>(base + i);
        if (id < ids.end()) continue;  // sent before
        ids.skip(id);
        if constexpr (!std::is_same_v<Entry, std::string>)
            if (!repair(entries[i])) continue;
        usable.push_back(std::move(entries[i]));
        ids.add(id);
    }
    entries = std::move(usable);
    base = first;
}

void GapRepair::repair_rows(wire::Batch& batch) const {
    struct Left {
        std::uint64_t samples = 0, first_ns = 0, last_ns = 0;
    };
    std::map<wire::Id, Left> left_out;  // by event; 0: the event is missing
    std::erase_if(batch.rows, [&](wire::Row& row) {
        const auto event = events_.find(row.event);
        const auto thread = threads_.find(row.thread);
        const auto stack = stacks_.find(row.stack);
        if (event && thread && stack) {
            row.event = *event;
            row.thread = *thread;
            row.stack = *stack;
            return false;
        }
        Left& left = left_out[event.value_or(0)];
        const std::uint64_t at_ns = row.bucket * batch.bucket_ns;
        left.first_ns = left.samples == 0 ? at_ns : std::min(left.first_ns, at_ns);
        left.last_ns = std::max(left.last_ns, at_ns);
        left.samples += row.count;
        return true;
    });
    for (const auto& [event, left] : left_out)
        batch.losses.push_back(
            {wire::LossReason::batches_missing, left.samples, left.first_ns, left.last_ns, event, 0});
}

bool GapRepair::repair(wire::Hits& hits) const {
    if (!replace(hits.event, events_.find(hits.event))) return false;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < hits.hits.size(); ++i) {
        wire::Hit hit = hits.hits[i];
        if (!replace(hit.thread, threads_.find(hit.thread)) || !replace(hit.stack, stacks_.find(hit.stack))) {
            ++hits.dropped;
            continue;
        }
        hits.hits[kept] = hit;
        std::copy_n(hits.values.begin() + static_cast<std::ptrdiff_t>(i * hits.fields), hits.fields,
                    hits.values.begin() + static_cast<std::ptrdiff_t>(kept++ * hits.fields));
    }
    hits.hits.resize(kept);
    hits.values.resize(kept * hits.fields);
    std::erase_if(hits.addresses,
                  [&](wire::HitAddress& it) { return !replace(it.location, locations_.find(it.location)); });
    return true;
}

void GapRepair::repair_rest(wire::Batch& batch) const {
    const auto keep_usable = [&](auto& entries) {
        std::erase_if(entries, [&](auto& entry) { return !repair(entry); });
    };
    keep_usable(batch.lifecycle);
    keep_usable(batch.symbols);
    for (wire::CounterReading& reading : batch.counters) keep_usable(reading.values);
    std::erase_if(batch.unwinds,
                  [&](wire::ProcessUnwind& it) { return !replace(it.process, processes_.find(it.process)); });
    std::erase_if(batch.thread_times,
                  [&](wire::ThreadTimes& it) { return !replace(it.thread, threads_.find(it.thread)); });
    std::erase_if(batch.hits, [&](wire::Hits& it) { return !repair(it); });
    for (wire::Loss& loss : batch.losses) loss.event = events_.find(loss.event).value_or(0);
}

void GapRepair::apply(wire::Batch& batch) {
    if (!has_gaps_) {
        strings_.keep(batch.string_base, batch.strings.size());
        modules_.keep(batch.module_base, batch.modules.size());
        locations_.keep(batch.location_base, batch.locations.size());
        stacks_.keep(batch.stack_base, batch.stacks.size());
        processes_.keep(batch.process_base, batch.processes.size());
        threads_.keep(batch.thread_base, batch.threads.size());
        events_.keep(batch.event_base, batch.events.size());
        return;
    }
    repair_table(strings_, batch.string_base, batch.strings);
    repair_table(modules_, batch.module_base, batch.modules);
    repair_table(locations_, batch.location_base, batch.locations);
    repair_table(stacks_, batch.stack_base, batch.stacks);
    repair_table(processes_, batch.process_base, batch.processes);
    repair_table(threads_, batch.thread_base, batch.threads);
    repair_table(events_, batch.event_base, batch.events);
    repair_rest(batch);
    repair_rows(batch);
}

}  // namespace flamewire::profile
