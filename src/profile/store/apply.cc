#include "profile/store/apply.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "profile/store/changes.h"
#include "profile/store/coarsen.h"
#include "profile/store/tables.h"

namespace flamewire::profile {

namespace {

// Leaves room above every time, so that the end of a coarse bucket does not overflow: 292 years of uptime.
constexpr std::uint64_t max_time_ns = std::numeric_limits<std::uint64_t>::max() / 2;
constexpr std::size_t max_notices = 1'000;
constexpr std::size_t max_notice_bytes = 1'000;  // of each of its texts
constexpr std::size_t max_about_bytes = 4'096;   // of each text of a recording
constexpr std::size_t max_about_pids = 65'536;
constexpr std::size_t max_why_bytes = 500;  // one sentence

// Ids below these exist once the batch is applied.
struct Bounds {
    std::size_t strings = 0, modules = 0, locations = 0, stacks = 0, processes = 0, threads = 0, events = 0;
};

// Threads start and end too often for a mark each, and a new name alone is not an event.
std::optional<MarkKind> mark_of(wire::LifecycleKind kind) {
    switch (kind) {
        case wire::LifecycleKind::fork: return MarkKind::begin;
        case wire::LifecycleKind::exec: return MarkKind::exec;
        case wire::LifecycleKind::exit: return MarkKind::exit;
        case wire::LifecycleKind::comm: break;
    }
    return std::nullopt;
}

// These losses make no gap on the time axis: the samples are in the profile, with a frame that marks the flaw. For
// unknown thread states, the lost samples mark the gap.
bool is_shown(wire::LossReason reason) {
    return reason == wire::LossReason::stack_truncated || reason == wire::LossReason::unknown_process ||
           reason == wire::LossReason::time_coarsened || reason == wire::LossReason::thread_state_unknown;
}

std::unexpected<Error> bad(std::string_view what) {
    return fail(ErrorCode::invalid, fmt::format("the batch is inconsistent: {}", what));
}

// Size of a table after a batch that adds `added` entries from `base` on.
Result<std::size_t> size_after(std::string_view table, std::size_t size, wire::Id base, std::size_t added) {
    if (added == 0) return size;
    if (base == 0 || base > size) return bad(fmt::format("{} start at id {}, but {} is next", table, base, size));
    if (added > std::numeric_limits<wire::Id>::max() - base) return bad(fmt::format("too many {}", table));
    return std::max(size, base + added);
}

Result<Bounds> bounds_after(const wire::Batch& batch, const EpochMaps& maps) {
    Bounds bounds;
    bounds.strings = TRY(size_after("strings", maps.strings.size(), batch.string_base, batch.strings.size()));
    bounds.modules = TRY(size_after("modules", maps.modules.size(), batch.module_base, batch.modules.size()));
    bounds.locations = TRY(size_after("locations", maps.locations.size(), batch.location_base, batch.locations.size()));
    bounds.stacks = TRY(size_after("stacks", maps.stacks.size(), batch.stack_base, batch.stacks.size()));
    bounds.processes = TRY(size_after("processes", maps.processes.size(), batch.process_base, batch.processes.size()));
    bounds.threads = TRY(size_after("threads", maps.threads.size(), batch.thread_base, batch.threads.size()));
    bounds.events = TRY(size_after("events", maps.events.size(), batch.event_base, batch.events.size()));
    return bounds;
}

Result<bool> check_entries(const wire::Batch& batch, const Bounds& bounds) {
    for (const wire::Module& module : batch.modules)
        if (module.path >= bounds.strings) return bad("a module's path");
    for (const wire::Location& location : batch.locations)
        if (location.module >= bounds.modules || location.name >= bounds.strings || location.file >= bounds.strings)
            return bad("a location's module, name or file");
    for (const wire::Process& process : batch.processes)
        for (const wire::Id text :
             {process.comm, process.exe, process.command_line, process.cgroup, process.container_id})
            if (text >= bounds.strings) return bad("a process's text");
    for (const wire::Thread& thread : batch.threads)
        if (thread.process >= bounds.processes || thread.comm >= bounds.strings)
            return bad("a thread's process or name");
    for (const wire::Event& event : batch.events)
        if (event.name == 0 || event.name >= bounds.strings || event.unit >= bounds.strings)
            return bad("an event's name or unit");
    return true;
}

// Requires that parents come before children, and that no stack is deeper than the limit.
Result<bool> check_stacks(const wire::Batch& batch, const EpochMaps& maps, const Bounds& bounds,
                          std::span<const std::uint16_t> known_depth) {
    const std::size_t known = maps.stacks.size();
    std::vector<std::uint16_t> added;
    added.reserve(bounds.stacks - known);
    for (std::size_t i = 0; i < batch.stacks.size(); ++i) {
        const wire::StackNode& node = batch.stacks[i];
        const std::size_t id = batch.stack_base + i;
        if (id < known) continue;
        if (node.parent >= id) return bad("a stack node comes before its parent");
        if (node.location == 0 || node.location >= bounds.locations) return bad("a stack node's location");
        const std::uint32_t depth =
            (node.parent < known ? known_depth[maps.stacks[node.parent]] : added[node.parent - known]) + 1U;
        if (depth > max_stack_depth) return bad("a stack is too deep");
        added.push_back(static_cast<std::uint16_t>(depth));
    }
    return true;
}

Result<bool> check_rows(const wire::Batch& batch, const Bounds& bounds) {
    if (!batch.rows.empty() && batch.bucket_ns == 0) return bad("the bucket width");
    for (const wire::Row& row : batch.rows) {
        if (row.event == 0 || row.event >= bounds.events) return bad("a row's event");
        if (row.thread >= bounds.threads) return bad("a row's thread");
        if (row.stack >= bounds.stacks) return bad("a row's stack");
        if (row.bucket >= max_time_ns / batch.bucket_ns) return bad("a row's time");
    }
    return true;
}

Result<bool> check_rest(const wire::Batch& batch, const Bounds& bounds) {
    for (const wire::Lifecycle& entry : batch.lifecycle)
        if (entry.thread >= bounds.threads || entry.comm >= bounds.strings) return bad("a lifecycle event's thread");
    for (const wire::Loss& loss : batch.losses)
        if (loss.event >= bounds.events) return bad("a loss's event");
    for (const wire::Symbol& symbol : batch.symbols)
        if (symbol.module == 0 || symbol.module >= bounds.modules || symbol.name >= bounds.strings)
            return bad("a symbol's module or name");
    for (const wire::CounterReading& reading : batch.counters) {
        if (reading.end_ns > max_time_ns) return bad("the time of a reading");
        for (const wire::CounterValue& value : reading.values)
            if (value.name == 0 || value.name >= bounds.strings || value.unit >= bounds.strings ||
                value.part >= bounds.strings || value.thread >= bounds.threads)
                return bad("a counter's name, unit, part or thread");
    }
    for (const wire::ThreadTimes& times : batch.thread_times)
        if (times.thread == 0 || times.thread >= bounds.threads || times.end_ns > max_time_ns)
            return bad("what a thread did");
    for (const wire::Hits& hits : batch.hits) {
        if (hits.event == 0 || hits.event >= bounds.events) return bad("the event of a hit");
        for (const wire::Hit& hit : hits.hits)
            if (hit.thread >= bounds.threads || hit.stack >= bounds.stacks || hit.time_ns > max_time_ns)
                return bad("a hit's thread, stack or time");
        for (const wire::HitAddress& address : hits.addresses)
            if (address.location >= bounds.locations) return bad("the location of a value");
    }
    for (const wire::ProcessUnwind& unwind : batch.unwinds)
        if (unwind.process == 0 || unwind.process >= bounds.processes) return bad("the process of some stacks");
    return true;
}

// Limits the texts, because each reader gets a copy of them.
wire::Recording bounded(wire::Recording recording) {
    for (std::string* text : {&recording.target, &recording.host, &recording.arch, &recording.kernel_release,
                              &recording.agent_version, &recording.boot_id, &recording.unwind})
        if (text->size() > max_about_bytes) text->resize(max_about_bytes);
    if (recording.pids.size() > max_about_pids) recording.pids.resize(max_about_pids);
    return recording;
}

// Appends the store's ids of the entries that are new in this epoch.
template <class Entry, class Intern>
void extend_map(std::vector<std::uint32_t>& map, wire::Id base, const std::vector<Entry>& entries, Intern intern) {
    for (std::size_t i = entries.empty() ? 0 : map.size() - base; i < entries.size(); ++i)
        map.push_back(intern(entries[i]));
}

void apply_tables(Store::Tables& t, const wire::Batch& batch) {
    EpochMaps& maps = t.epoch;
    extend_map(maps.strings, batch.string_base, batch.strings,
               [&](const std::string& text) { return t.strings.intern(text); });
    if (batch.recording) {
        const bool changed = t.recording && batch.recording->changed_ns > t.recording->changed_ns;
        if (changed && batch.recording->changed_ns <= max_time_ns && batch.recording->gap_ns <= max_time_ns)
            t.marks.add({.kind = MarkKind::change,
                         .start_ns = batch.recording->changed_ns,
                         .end_ns = batch.recording->changed_ns + batch.recording->gap_ns,
                         .name = t.strings.intern(what_changed(*t.recording, *batch.recording))});
        t.recording = bounded(*batch.recording);
        for (Module& module : t.modules)
            if (module.identity.kind == symbol::ModuleKind::kernel) module.identity.boot_id = t.recording->boot_id;
    }
    extend_map(maps.modules, batch.module_base, batch.modules, [&](const wire::Module& module) {
        return t.intern_module(module, t.strings[maps.strings[module.path]]);
    });
    extend_map(maps.locations, batch.location_base, batch.locations, [&](const wire::Location& entry) {
        Location location;
        location.address = entry.address;
        location.module = maps.modules[entry.module];
        location.name = maps.strings[entry.name];
        location.file = maps.strings[entry.file];
        location.line = entry.line;
        location.flags = static_cast<std::uint8_t>(entry.flags);
        return t.intern_location(location);
    });
    extend_map(maps.stacks, batch.stack_base, batch.stacks, [&](const wire::StackNode& node) {
        return t.intern_stack(maps.stacks[node.parent], maps.locations[node.location]);
    });
    extend_map(maps.processes, batch.process_base, batch.processes,
               [&](const wire::Process& process) { return t.intern_process(process, maps.strings); });
    extend_map(maps.threads, batch.thread_base, batch.threads, [&](const wire::Thread& thread) {
        return t.intern_thread(maps.processes[thread.process], thread.tid, t.strings[maps.strings[thread.comm]]);
    });
    extend_map(maps.events, batch.event_base, batch.events, [&](const wire::Event& event) {
        return t.intern_event(t.strings[maps.strings[event.name]], t.strings[maps.strings[event.unit]], event);
    });
}

void apply_symbols(Store::Tables& t, const wire::Batch& batch) {
    std::unordered_map<ModuleId, std::vector<SymbolInterval>> added;
    for (const wire::Symbol& symbol : batch.symbols)
        added[t.epoch.modules[symbol.module]].push_back({symbol.address, symbol.size, t.epoch.strings[symbol.name]});
    std::vector<std::uint8_t> renamed(t.modules.size());
    bool any = false;
    for (const auto& [module, intervals] : added)
        if (t.module_symbols[module].add(intervals)) renamed[module] = any = true;
    if (!any) return;
    std::vector<std::uint8_t> changed(t.locations.size());
    any = false;
    for (LocationId id = 1; id < t.locations.size(); ++id) {
        if (renamed[t.locations[id].module] == 0) continue;
        if (t.locations[id].by_symbolizer && !t.is_ended_program(t.locations[id])) continue;
        const LocationFrame frame = t.frame_from_wire(t.locations[id]);
        if (t.replace_frames(id, {&frame, 1})) changed[id] = any = true;
    }
    if (any) t.remap_nodes(changed);
}

void apply_rows(Store::Tables& t, const wire::Batch& batch) {
    for (const wire::Row& row : batch.rows) {
        const Lane lane{t.epoch.events[row.event], t.epoch.threads[row.thread], row.cpu};
        t.rows.append(batch.bucket_ns, {row.bucket, lane, t.epoch.stacks[row.stack], row.count, row.weight});
        t.event_totals[lane.event] += {row.count, row.weight};
        t.first_row_ns = std::min(t.first_row_ns, row.bucket * batch.bucket_ns);
        t.last_row_end_ns = std::max(t.last_row_end_ns, (row.bucket + 1) * batch.bucket_ns);
    }
}

void apply_hits(Store::Tables& t, const wire::Hits& hits) {
    HitChunk chunk;
    chunk.event = t.epoch.events[hits.event];
    chunk.fields = hits.fields;
    chunk.description = t.events[chunk.event].description;
    t.hits.add_dropped(hits.dropped);
    chunk.hits.reserve(hits.hits.size());
    for (const wire::Hit& hit : hits.hits)
        chunk.hits.push_back(
            {hit.time_ns, t.epoch.threads[hit.thread], hit.cpu, t.epoch.stacks[hit.stack], hit.weight});
    chunk.values = hits.values;
    chunk.texts = hits.texts;
    for (const wire::HitAddress& address : hits.addresses)
        chunk.places.push_back({address.value, t.epoch.locations[address.location]});
    t.hits.add(std::move(chunk));
}

void apply_lifecycle(Store::Tables& t, const wire::Lifecycle& entry) {
    const ThreadId id = t.epoch.threads[entry.thread];
    if (id == 0) return;
    Thread& thread = t.threads[id];
    const bool renamed = entry.kind == wire::LifecycleKind::comm || entry.kind == wire::LifecycleKind::exec;
    if (renamed && entry.comm != 0) {
        thread.comm = t.strings[t.epoch.strings[entry.comm]];
        if (thread.tid == thread.pid) t.processes[thread.process].comm = thread.comm;
    }
    // A tid that is reused within a process is the same entry.
    if (entry.kind == wire::LifecycleKind::exit) thread.ended_ns = std::min(entry.time_ns, max_time_ns);
    if (entry.kind == wire::LifecycleKind::fork) thread.ended_ns = 0;
    const std::optional<MarkKind> kind = mark_of(entry.kind);
    if (!kind || thread.tid != thread.pid || entry.time_ns > max_time_ns) return;
    const StringId name = entry.comm != 0 ? t.epoch.strings[entry.comm] : t.strings.intern(thread.comm);
    t.marks.add({.kind = *kind, .start_ns = entry.time_ns, .end_ns = entry.time_ns, .thread = id, .name = name});
}

bool apply_state(Store::Tables& t, const wire::Batch& batch) {
    if (batch.monotonic_ns <= max_time_ns) t.closed_ns = std::max(t.closed_ns, batch.monotonic_ns);
    for (const wire::Lifecycle& entry : batch.lifecycle) apply_lifecycle(t, entry);
    for (const wire::Loss& loss : batch.losses) {
        t.add_loss({loss.reason, t.epoch.events[loss.event], loss.count, loss.first_ns, loss.last_ns, false});
        if (loss.count == 0 || is_shown(loss.reason) || batch.monotonic_ns > max_time_ns) continue;
        // These rows are missing among others that are shown. note_missing() marks the time of the missing batches.
        if (loss.reason == wire::LossReason::batches_missing) continue;
        // If the time of a loss is unknown, use the time at which the batch was closed.
        const std::uint64_t last_ns = loss.last_ns == 0 ? batch.monotonic_ns : std::min(loss.last_ns, max_time_ns);
        t.marks.add({.kind = MarkKind::loss,
                     .start_ns = loss.first_ns == 0 ? last_ns : std::min(loss.first_ns, last_ns),
                     .end_ns = last_ns,
                     .count = loss.count,
                     .reason = loss.reason,
                     .event = t.epoch.events[loss.event]});
    }
    for (const wire::Notice& given : batch.notices) {
        if (t.notices.size() >= max_notices) break;
        const wire::Notice notice{given.code.substr(0, max_notice_bytes), given.text.substr(0, max_notice_bytes),
                                  given.remedy.substr(0, max_notice_bytes)};
        if (std::ranges::find(t.notices, notice) == t.notices.end()) t.notices.push_back(notice);
    }
    for (const wire::ProcessUnwind& unwind : batch.unwinds) {
        const ProcessId process = t.epoch.processes[unwind.process];
        std::optional<wire::ProcessUnwind>& kept = t.processes[process].unwind;
        if (!kept) t.processes_with_stacks.push_back(process);
        kept = unwind;
        if (kept->why.size() > max_why_bytes) kept->why.resize(max_why_bytes);
    }
    for (const wire::CounterReading& reading : batch.counters)
        for (const wire::CounterValue& value : reading.values)
            t.counters.add({t.epoch.strings[value.name], t.epoch.strings[value.unit], t.epoch.strings[value.part],
                            t.epoch.threads[value.thread], value.cpu_plus_1},
                           {reading.start_ns, reading.end_ns, value.value, value.enabled_ns, value.running_ns,
                            value.status, reading.after_gap});
    for (const wire::Hits& hits : batch.hits) apply_hits(t, hits);
    for (const wire::ThreadTimes& times : batch.thread_times) t.thread_times.add(t.epoch.threads[times.thread], times);
    if (batch.agent) t.agent_stats = batch.agent;
    if (batch.end) t.end = wire::End{batch.end->reason.substr(0, max_why_bytes), batch.end->exit_code};
    return batch.recording || batch.agent || batch.end || !batch.losses.empty() || !batch.notices.empty() ||
           !batch.unwinds.empty() || !batch.counters.empty() || !batch.thread_times.empty() || !batch.hits.empty();
}

void enforce_limits(Store::Tables& t) {
    const auto weights_by_event = [](const RowChunk& chunk) {
        std::unordered_map<EventId, Weight> weights;
        for (std::size_t row = 0; row < chunk.size(); ++row)
            weights[chunk.lanes[chunk.lane[row]].event] += row_weight(chunk, row);
        return weights;
    };
    // A coarse bucket can begin before the first sample and end after the last.
    const auto begin_of = [&](const RowChunk& chunk) { return std::max(chunk.first_ns(), t.first_row_ns); };
    const auto end_of = [&](const RowChunk& chunk) { return std::min(chunk.end_ns(), t.last_row_end_ns); };
    const CoarsenHooks hooks{
        .fold_thread = [&](ThreadId thread) { return t.intern_thread(t.threads[thread].process, 0, "[threads]"); },
        .coarsened =
            [&](const RowChunk& chunk) {
                for (const auto& [event, weight] : weights_by_event(chunk))
                    t.add_loss({wire::LossReason::time_coarsened, event, weight.samples, begin_of(chunk), end_of(chunk),
                                true});
            },
        .dropped =
            [&](const RowChunk& chunk) {
                for (const auto& [event, weight] : weights_by_event(chunk)) {
                    t.add_loss(
                        {wire::LossReason::unknown, event, weight.samples, begin_of(chunk), end_of(chunk), true});
                    t.event_totals[event].samples -= weight.samples;
                    t.event_totals[event].weight -= weight.weight;
                }
                if (t.dropped_end_ns == 0) t.dropped_first_ns = begin_of(chunk);
                t.dropped_first_ns = std::min(t.dropped_first_ns, begin_of(chunk));
                t.dropped_end_ns = std::max(t.dropped_end_ns, end_of(chunk));
            },
    };
    enforce_row_limit(t.rows, t.limits.max_rows, hooks);
}

}  // namespace

Result<bool> validate(const Store::Tables& t, const wire::Batch& batch, const EpochMaps& maps) {
    const Bounds bounds = TRY(bounds_after(batch, maps));
    (void)TRY(check_entries(batch, bounds));
    (void)TRY(check_stacks(batch, maps, bounds, t.stack_depth));
    (void)TRY(check_rows(batch, bounds));
    return check_rest(batch, bounds);
}

bool apply_batch(Store::Tables& t, const wire::Batch& batch) {
    const std::size_t threads_before = t.threads.size();
    t.count_beside_frames();
    apply_tables(t, batch);
    apply_symbols(t, batch);
    const bool state_changed = apply_state(t, batch);
    apply_rows(t, batch);
    enforce_limits(t);
    t.full = t.memory_bytes() - t.rows.memory_bytes() > t.limits.max_table_bytes;
    const bool changed = state_changed || !batch.rows.empty() || !batch.symbols.empty() || !batch.lifecycle.empty() ||
                         !batch.events.empty() || t.threads.size() != threads_before;
    if (changed) ++t.version;
    return changed;
}

// The tables do not change, so only ids of known events are looked up.
void count_only(Store::Tables& t, const wire::Batch& batch) {
    const bool known = batch.recording_id == t.epoch.recording_id && batch.epoch == t.epoch.epoch;
    const auto event_of = [&](wire::Id id) {
        return known && id < t.epoch.events.size() ? t.epoch.events[id] : EventId{0};
    };
    for (const wire::Row& row : batch.rows) {
        const bool sane = batch.bucket_ns != 0 && row.bucket < max_time_ns / batch.bucket_ns;
        const std::uint64_t at_ns = sane ? row.bucket * batch.bucket_ns : 0;
        t.add_loss({wire::LossReason::unknown, event_of(row.event), row.count, at_ns, at_ns, true});
    }
    for (const wire::Hits& hits : batch.hits) t.hits.add_dropped(hits.dropped + hits.hits.size());
    for (const wire::Loss& loss : batch.losses)
        t.add_loss({loss.reason, event_of(loss.event), loss.count, loss.first_ns, loss.last_ns, false});
    if (batch.monotonic_ns <= max_time_ns) t.closed_ns = std::max(t.closed_ns, batch.monotonic_ns);
    if (batch.agent) t.agent_stats = batch.agent;
    if (batch.end) t.end = wire::End{batch.end->reason.substr(0, max_why_bytes), batch.end->exit_code};
    ++t.version;
}

}  // namespace flamewire::profile
