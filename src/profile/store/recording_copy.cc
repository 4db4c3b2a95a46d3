#include "profile/store/recording_copy.h"

#include <algorithm>
#include <utility>

namespace flamewire::profile {
namespace {

// Well below the limit of a batch, even with the entries that one stack adds.
constexpr std::size_t enough_entries = std::size_t{1} << 17;
constexpr std::uint64_t latest_ns = std::numeric_limits<std::int64_t>::max();

auto members(wire::ProcessUnwind& counts) {
    return std::tie(counts.samples, counts.whole, counts.joined, counts.truncated, counts.open_end, counts.stopped,
                    counts.frames, counts.stack_bytes);
}

// The change of the counts between two moments.
wire::ProcessUnwind difference(wire::ProcessUnwind after, wire::ProcessUnwind before) {
    const auto subtract = [](std::uint64_t& a, std::uint64_t b) { a -= std::min(a, b); };
    std::apply([&](auto&... a) { std::apply([&](auto&... b) { (subtract(a, b), ...); }, members(before)); },
               members(after));
    return after;
}

}  // namespace

// Known entries may be sent again.
template <class Entry>
void RecordingCopy::Table<Entry>::extend(wire::Id base, const std::vector<Entry>& more) {
    for (std::size_t i = entries.size() - std::min<std::size_t>(entries.size(), base); i < more.size(); ++i) {
        entries.push_back(more[i]);
        copied.push_back(0);
    }
}

template <class Entry>
template <class Translate>
wire::Id RecordingCopy::Table<Entry>::copy(wire::Id id, recording::Table<Entry>& to, Translate translate) {
    if (id == 0 || copied[id] != 0) return copied[id];
    Entry entry = entries[id];
    translate(entry);
    return copied[id] = to.add(std::move(entry));
}

void RecordingCopy::begin(CopySource source) {
    source_ = std::move(source);
    source_epoch_ = 0;
    recording_ = source_.about;
    before_.clear();
    realtime_minus_monotonic_ns_ = 0;
}

std::uint64_t RecordingCopy::shifted(std::uint64_t time_ns) const {
    const auto time = static_cast<std::int64_t>(std::min(time_ns, latest_ns));
    std::int64_t moved = 0;
    if (__builtin_add_overflow(time, source_.shift_ns, &moved)) return time_ns;
    return static_cast<std::uint64_t>(std::max<std::int64_t>(moved, 0));
}

void RecordingCopy::begin_epoch(const wire::Batch& batch) {
    source_epoch_ = batch.epoch;
    tables_ = {};
    ++epoch_;
    recording_changed_ = recording_.has_value();
    out_tables_ = {};
}

// Calls visit(table, base, entries) for each table, until it returns false.
template <class Visit>
bool RecordingCopy::each_table(const wire::Batch& batch, Visit visit) {
    return visit(tables_.strings, batch.string_base, batch.strings) &&
           visit(tables_.modules, batch.module_base, batch.modules) &&
           visit(tables_.locations, batch.location_base, batch.locations) &&
           visit(tables_.stacks, batch.stack_base, batch.stacks) &&
           visit(tables_.processes, batch.process_base, batch.processes) &&
           visit(tables_.threads, batch.thread_base, batch.threads) &&
           visit(tables_.events, batch.event_base, batch.events);
}

// Checks the whole batch before using any of it, because a walk must never reach an entry that points nowhere.
bool RecordingCopy::refers_to_known(const wire::Batch& batch) const {
    const auto known = [](const auto& table, wire::Id base, const auto& more) {
        const std::size_t size = more.empty() ? 0 : std::size_t{base} + more.size();
        return [size = std::max(size, table.entries.size())](wire::Id id) { return id < size; };
    };
    const auto text = known(tables_.strings, batch.string_base, batch.strings);
    const auto module_known = known(tables_.modules, batch.module_base, batch.modules);
    const auto location_known = known(tables_.locations, batch.location_base, batch.locations);
    const auto stack_known = known(tables_.stacks, batch.stack_base, batch.stacks);
    const auto process_known = known(tables_.processes, batch.process_base, batch.processes);
    const auto thread_known = known(tables_.threads, batch.thread_base, batch.threads);
    const auto event_known = known(tables_.events, batch.event_base, batch.events);
    const auto all = [](const auto& list, auto fits) { return std::ranges::all_of(list, fits); };
    // A parent must come before its child, so that no walk loops.
    for (std::size_t i = 0; i < batch.stacks.size(); ++i) {
        const wire::StackNode& node = batch.stacks[i];
        if (node.parent >= batch.stack_base + i || !location_known(node.location)) return false;
    }
    return all(batch.modules, [&](const wire::Module& it) { return text(it.path); }) &&
           all(batch.locations,
               [&](const wire::Location& it) { return module_known(it.module) && text(it.name) && text(it.file); }) &&
           all(batch.processes,
               [&](const wire::Process& it) {
                   return text(it.comm) && text(it.exe) && text(it.command_line) && text(it.cgroup) &&
                          text(it.container_id);
               }) &&
           all(batch.threads, [&](const wire::Thread& it) { return process_known(it.process) && text(it.comm); }) &&
           all(batch.events, [&](const wire::Event& it) { return text(it.name) && text(it.unit); }) &&
           all(batch.rows,
               [&](const wire::Row& it) {
                   return event_known(it.event) && thread_known(it.thread) && stack_known(it.stack) &&
                          it.bucket <= latest_ns / batch.bucket_ns;
               }) &&
           all(batch.lifecycle, [&](const wire::Lifecycle& it) { return thread_known(it.thread) && text(it.comm); }) &&
           all(batch.losses, [&](const wire::Loss& it) { return event_known(it.event); }) &&
           all(batch.symbols, [&](const wire::Symbol& it) { return module_known(it.module) && text(it.name); }) &&
           all(batch.unwinds, [&](const wire::ProcessUnwind& it) { return process_known(it.process); }) &&
           all(batch.hits,
               [&](const wire::Hits& hits) {
                   return event_known(hits.event) &&
                          all(hits.hits,
                              [&](const wire::Hit& it) { return thread_known(it.thread) && stack_known(it.stack); }) &&
                          all(hits.addresses, [&](const wire::HitAddress& it) { return location_known(it.location); });
               }) &&
           all(batch.thread_times, [&](const wire::ThreadTimes& it) { return thread_known(it.thread); }) &&
           all(batch.counters, [&](const wire::CounterReading& reading) {
               return all(reading.values, [&](const wire::CounterValue& it) {
                   return text(it.name) && text(it.unit) && text(it.part) && thread_known(it.thread);
               });
           });
}

Result<bool> RecordingCopy::add(const wire::Batch& batch) {
    if (batch.bucket_ns == 0) return fail(ErrorCode::invalid, "a batch whose buckets have no width");
    if (source_epoch_ != batch.epoch) begin_epoch(batch);
    if (realtime_minus_monotonic_ns_ == 0)
        realtime_minus_monotonic_ns_ = source_.realtime_ns != 0
                                           ? source_.realtime_ns
                                           : batch.realtime_ns - static_cast<std::int64_t>(shifted(batch.monotonic_ns));
    const auto continues = [](const auto& table, wire::Id base, const auto& entries) {
        return entries.empty() || (base >= 1 && base <= table.entries.size());
    };
    if (!each_table(batch, continues) || !refers_to_known(batch))
        return fail(ErrorCode::invalid, "a batch refers to something that was never sent");
    each_table(batch, [](auto& table, wire::Id base, const auto& entries) {
        table.extend(base, entries);
        return true;
    });
    if (batch.recording && !source_.about) {
        recording_changed_ = recording_changed_ || !recording_ || *recording_ != *batch.recording;
        recording_ = batch.recording;
    }
    for (const wire::Symbol& symbol : batch.symbols)
        out_.symbols.push_back({module(symbol.module), symbol.address, symbol.size, string(symbol.name)});
    for (const wire::Lifecycle& change : batch.lifecycle) add_lifecycle(change);
    TRY(add_rows(batch));
    for (const wire::Hits& hits : batch.hits) add_hits(hits, in_window(batch.monotonic_ns));
    add_losses(batch);
    add_unwinds(batch);
    if (source_.counters)
        for (const wire::CounterReading& reading : batch.counters) add_counters(reading);
    for (const wire::ThreadTimes& times : batch.thread_times) {
        if (!in_window(times.end_ns - times.length_ns())) continue;
        out_.thread_times.push_back(times);
        out_.thread_times.back().thread = thread(times.thread);
        out_.thread_times.back().end_ns = shifted(times.end_ns);
    }
    for (const wire::Notice& notice : batch.notices) out_.notices.push_back(notice);
    if (batch.agent && in_window(batch.monotonic_ns)) out_.agent = batch.agent;
    if (pending() == 0 && !out_.agent && out_.notices.empty()) return true;
    return flush(std::clamp(batch.monotonic_ns, source_.start_ns, source_.end_ns));
}

wire::Id RecordingCopy::string(wire::Id id) {
    return tables_.strings.copy(id, out_tables_.strings, [](const std::string&) {});
}

wire::Id RecordingCopy::module(wire::Id id) {
    return tables_.modules.copy(id, out_tables_.modules, [&](wire::Module& module) {
        module.path = string(module.path);
        // Only this distinguishes the kernels of two machines.
        if (module.kind == wire::ModuleKind::kernel && module.build_id.empty()) module.mtime_ns = source_.apart;
    });
}

wire::Id RecordingCopy::location(wire::Id id) {
    return tables_.locations.copy(id, out_tables_.locations, [&](wire::Location& location) {
        location.module = module(location.module);
        location.name = string(location.name);
        location.file = string(location.file);
    });
}

wire::Id RecordingCopy::stack(wire::Id id) {
    std::vector<wire::Id> missing;  // innermost first
    while (id != 0 && tables_.stacks.copied[id] == 0) {
        missing.push_back(id);
        id = tables_.stacks.entries[id].parent;
    }
    wire::Id parent = id == 0 ? 0 : tables_.stacks.copied[id];
    for (auto at = missing.rbegin(); at != missing.rend(); ++at)
        parent = tables_.stacks.copied[*at] =
            out_tables_.stacks.add({parent, location(tables_.stacks.entries[*at].location)});
    return parent;
}

wire::Id RecordingCopy::process(wire::Id id) {
    return tables_.processes.copy(id, out_tables_.processes, [&](wire::Process& process) {
        for (wire::Id* text :
             {&process.comm, &process.exe, &process.command_line, &process.cgroup, &process.container_id})
            *text = string(*text);
        // A process is identified by its pid and start time, so change the start time of a process from another
        // machine.
        if (source_.apart != 0) process.start_time_ns = shifted(process.start_time_ns) + source_.apart;
    });
}

wire::Id RecordingCopy::thread(wire::Id id) {
    return tables_.threads.copy(id, out_tables_.threads, [&](wire::Thread& thread) {
        thread.process = process(thread.process);
        thread.comm = string(thread.comm);
    });
}

wire::Id RecordingCopy::event(wire::Id id) {
    return tables_.events.copy(id, out_tables_.events, [&](wire::Event& event) {
        event.name = string(event.name);
        event.unit = string(event.unit);
    });
}

Result<bool> RecordingCopy::add_rows(const wire::Batch& batch) {
    out_.bucket_ns = batch.bucket_ns;
    for (const wire::Row& row : batch.rows) {
        const std::uint64_t time_ns = row.bucket * batch.bucket_ns;
        if (!in_window(time_ns)) continue;
        newest_ns_ = std::max(newest_ns_, shifted(time_ns) + batch.bucket_ns);
        out_.rows.push_back({shifted(time_ns) / batch.bucket_ns, event(row.event), thread(row.thread), row.cpu,
                             stack(row.stack), row.count, row.weight});
        ++rows_;
        if (pending() >= enough_entries) {
            TRY(flush(std::clamp(batch.monotonic_ns, source_.start_ns, source_.end_ns)));
            out_.bucket_ns = batch.bucket_ns;
        }
    }
    return true;
}

void RecordingCopy::add_hits(const wire::Hits& hits, bool with_dropped) {
    wire::Hits copied;
    for (std::size_t i = 0; i < hits.hits.size(); ++i) {
        wire::Hit hit = hits.hits[i];
        if (!in_window(hit.time_ns)) continue;
        hit.time_ns = shifted(hit.time_ns);
        hit.thread = thread(hit.thread);
        hit.stack = stack(hit.stack);
        copied.hits.push_back(hit);
        const auto first = hits.values.begin() + static_cast<std::ptrdiff_t>(i * hits.fields);
        copied.values.insert(copied.values.end(), first, first + hits.fields);
    }
    copied.dropped = with_dropped ? hits.dropped : 0;
    if (copied.hits.empty() && copied.dropped == 0) return;
    copied.event = event(hits.event);
    copied.fields = hits.fields;
    copied.texts = hits.texts;
    for (const wire::HitAddress& address : hits.addresses)
        copied.addresses.push_back({address.value, location(address.location)});
    out_.hits.push_back(std::move(copied));
}

// Changes before the window determine the state in it.
void RecordingCopy::add_lifecycle(const wire::Lifecycle& change) {
    const bool renamed = change.kind == wire::LifecycleKind::comm || change.kind == wire::LifecycleKind::exec;
    if (in_window(change.time_ns)) {
        out_.lifecycle.push_back({change.kind, shifted(change.time_ns), thread(change.thread), string(change.comm)});
        return;
    }
    if (!renamed || change.time_ns >= source_.end_ns || change.thread == 0 || change.comm == 0) return;
    wire::Thread& thread = tables_.threads.entries[change.thread];
    wire::Process& process = tables_.processes.entries[thread.process];
    thread.comm = change.comm;
    if (thread.tid == process.pid) process.comm = change.comm;
}

// A loss that begins before the window or ends after it cannot be divided. Its full count is copied, and its times are
// limited to the window.
void RecordingCopy::add_losses(const wire::Batch& batch) {
    for (const wire::Loss& loss : batch.losses) {
        // If the time of a loss is unknown, use the time at which the batch was closed.
        const std::uint64_t last_ns = loss.last_ns != 0 ? loss.last_ns : batch.monotonic_ns;
        const std::uint64_t first_ns = loss.first_ns != 0 ? std::min(loss.first_ns, last_ns) : last_ns;
        if (last_ns < source_.start_ns || first_ns >= source_.end_ns) continue;
        wire::Loss copied = loss;
        copied.first_ns = shifted(std::max(first_ns, source_.start_ns));
        copied.last_ns = shifted(std::min(last_ns, source_.end_ns));
        copied.event = event(loss.event);
        out_.losses.push_back(copied);
    }
}

// The agent counts from the start of the recording, but the copy's recording starts with the window.
void RecordingCopy::add_unwinds(const wire::Batch& batch) {
    for (const wire::ProcessUnwind& unwind : batch.unwinds) {
        const wire::Process& of = tables_.processes.entries[unwind.process];
        const ProcessKey key{of.pid, of.start_time_ns, of.exec_generation};
        if (batch.monotonic_ns <= source_.start_ns) {
            before_[key] = unwind;
            continue;
        }
        if (batch.monotonic_ns > source_.end_ns && !batch.end && out_.rows.empty()) continue;
        const auto before = before_.find(key);
        wire::ProcessUnwind copied = before == before_.end() ? unwind : difference(unwind, before->second);
        copied.process = process(unwind.process);
        out_.unwinds.push_back(std::move(copied));
    }
}

void RecordingCopy::add_counters(const wire::CounterReading& reading) {
    if (!in_window(reading.start_ns)) return;
    wire::CounterReading copied = reading;
    copied.start_ns = shifted(reading.start_ns);
    copied.end_ns = shifted(reading.end_ns);
    for (wire::CounterValue& value : copied.values) {
        value.name = string(value.name);
        value.unit = string(value.unit);
        value.part = string(value.part);
        value.thread = thread(value.thread);
    }
    out_.counters.push_back(std::move(copied));
}

void RecordingCopy::note(std::string code, std::string text) {
    out_.notices.push_back({std::move(code), std::move(text), ""});
}

std::size_t RecordingCopy::pending() const {
    return out_tables_.unsent_count() + out_.rows.size() + out_.lifecycle.size() + out_.losses.size() +
           out_.symbols.size() + out_.unwinds.size() + out_.counters.size() + out_.thread_times.size() +
           out_.hits.size();
}

Result<bool> RecordingCopy::flush(std::uint64_t closed_ns) {
    wire::Batch batch = std::exchange(out_, {});
    batch.recording_id = id_;
    batch.epoch = std::max(epoch_, std::uint32_t{1});
    batch.seq = batch.first_seq = ++seq_;
    batch.monotonic_ns = std::max(shifted(closed_ns), newest_ns_);
    batch.realtime_ns = static_cast<std::int64_t>(batch.monotonic_ns) + realtime_minus_monotonic_ns_;
    out_tables_.flush(batch);
    if (std::exchange(recording_changed_, false) && recording_) {
        batch.recording = recording_;
        if (!source_.about) batch.recording->start_ns = shifted(std::max(recording_->start_ns, source_.start_ns));
    }
    return sink_(std::move(batch));
}

Result<bool> RecordingCopy::finish(std::string reason, std::uint64_t closed_ns) {
    out_.end = wire::End{std::move(reason), 0};
    newest_ns_ = std::max(newest_ns_, closed_ns);
    return flush(0);
}

}  // namespace flamewire::profile
