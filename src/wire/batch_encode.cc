// Batch values -> protobuf bytes. Columns are built as varint strings and written as packed fields.
#include <protozero/pbf_writer.hpp>
#include <protozero/varint.hpp>

#include <algorithm>
#include <limits>
#include <tuple>
#include <unordered_map>

#include "wire/batch.h"
#include "wire/batch_fields.h"

namespace flamewire::wire {
namespace {

using protozero::pbf_writer;
using Tag = field::Tag;

// A packed varint column under construction.
class Column {
public:
    void add(std::uint64_t value) {
        protozero::add_varint_to_buffer(&bytes_, value);
        if (value != 0) any_ = true;
    }
    void add_signed(std::int64_t value) { add(protozero::encode_zigzag64(value)); }

    void write(pbf_writer& writer, Tag tag) const { writer.add_bytes(tag, bytes_); }
    void write_unless_zero(pbf_writer& writer, Tag tag) const {
        if (any_) write(writer, tag);
    }

private:
    std::string bytes_;
    bool any_ = false;
};

// proto3 does not write scalars that are zero or empty.
void put(pbf_writer& writer, Tag tag, std::uint64_t value) {
    if (value != 0) writer.add_uint64(tag, value);
}
void put_signed(pbf_writer& writer, Tag tag, std::int64_t value) {
    if (value != 0) writer.add_int64(tag, value);
}
void put_text(pbf_writer& writer, Tag tag, std::string_view text) {
    if (!text.empty()) writer.add_bytes(tag, text.data(), text.size());
}

void write(pbf_writer out, const Recording& recording) {
    namespace f = field::recording;
    put_text(out, f::target, recording.target);
    if (!recording.pids.empty()) out.add_packed_uint32(f::pids, recording.pids.begin(), recording.pids.end());
    put_text(out, f::host, recording.host);
    put_text(out, f::arch, recording.arch);
    put_text(out, f::kernel_release, recording.kernel_release);
    put_text(out, f::agent_version, recording.agent_version);
    put_text(out, f::boot_id, recording.boot_id);
    put(out, f::frequency_hz, recording.frequency_hz);
    put(out, f::period, recording.period);
    put(out, f::effective_frequency_hz, recording.effective_frequency_hz);
    put_text(out, f::unwind, recording.unwind);
    put(out, f::kernel, recording.kernel ? 1 : 0);
    put(out, f::interval_ms, recording.interval_ms);
    put(out, f::start_ns, recording.start_ns);
    put(out, f::page_size, recording.page_size);
    put(out, f::cpus, recording.cpus);
    put(out, f::stack_bytes, recording.stack_bytes);
    put(out, f::max_depth, recording.max_depth);
    put(out, f::changed_ns, recording.changed_ns);
    put(out, f::gap_ns, recording.gap_ns);
}

void write(pbf_writer out, const Module& module) {
    namespace f = field::module;
    put(out, f::kind, static_cast<std::uint64_t>(module.kind));
    put(out, f::path, module.path);
    put_text(out, f::build_id, module.build_id);
    put(out, f::device, module.device);
    put(out, f::inode, module.inode);
    put(out, f::size, module.size);
    put_signed(out, f::mtime_ns, module.mtime_ns);
}

void write(pbf_writer out, const std::vector<Location>& locations) {
    namespace f = field::locations;
    Column module, address, flags, name, file, line;
    std::unordered_map<Id, std::uint64_t> previous;
    for (const Location& location : locations) {
        std::uint64_t& before = previous[location.module];
        module.add(location.module);
        address.add_signed(static_cast<std::int64_t>(location.address - before));
        before = location.address;
        flags.add(location.flags);
        name.add(location.name);
        file.add(location.file);
        line.add(location.line);
    }
    module.write(out, f::module);
    address.write(out, f::address_delta);
    flags.write_unless_zero(out, f::flags);
    name.write_unless_zero(out, f::name);
    file.write_unless_zero(out, f::file);
    line.write_unless_zero(out, f::line);
}

void write(pbf_writer out, const std::vector<StackNode>& stacks, Id stack_base, Id location_base) {
    namespace f = field::stacks;
    Column parent, location;
    Id next_new = location_base, own = stack_base;
    for (const StackNode& node : stacks) {
        parent.add(own - node.parent);
        location.add(next_new - node.location);
        if (node.location >= next_new) next_new = node.location + 1;
        ++own;
    }
    parent.write(out, f::parent_distance);
    location.write(out, f::location_back);
}

void write(pbf_writer out, const Process& process) {
    namespace f = field::process;
    put(out, f::pid, process.pid);
    put(out, f::ns_pid, process.ns_pid);
    put(out, f::parent_pid, process.parent_pid);
    put(out, f::start_time_ns, process.start_time_ns);
    put(out, f::exec_generation, process.exec_generation);
    put(out, f::comm, process.comm);
    put(out, f::exe, process.exe);
    put(out, f::command_line, process.command_line);
    put(out, f::cgroup, process.cgroup);
    put(out, f::container_id, process.container_id);
}

void write(pbf_writer out, const Thread& thread) {
    namespace f = field::thread;
    put(out, f::process, thread.process);
    put(out, f::tid, thread.tid);
    put(out, f::comm, thread.comm);
}

void write(pbf_writer out, const Event& event) {
    namespace f = field::event;
    put(out, f::name, event.name);
    put(out, f::unit, event.unit);
    put(out, f::frequency_hz, event.frequency_hz);
    put(out, f::period, event.period);
}

void write(pbf_writer out, const Lifecycle& lifecycle) {
    namespace f = field::lifecycle;
    put(out, f::kind, static_cast<std::uint64_t>(lifecycle.kind));
    put(out, f::time_ns, lifecycle.time_ns);
    put(out, f::thread, lifecycle.thread);
    put(out, f::comm, lifecycle.comm);
}

void write(pbf_writer out, const Loss& loss) {
    namespace f = field::loss;
    put(out, f::reason, static_cast<std::uint64_t>(loss.reason));
    put(out, f::count, loss.count);
    put(out, f::first_ns, loss.first_ns);
    put(out, f::last_ns, loss.last_ns);
    put(out, f::event, loss.event);
    put(out, f::cpu_plus_1, loss.cpu_plus_1);
}

void write(pbf_writer out, const Symbol& symbol) {
    namespace f = field::symbol;
    put(out, f::module, symbol.module);
    put(out, f::address, symbol.address);
    put(out, f::size, symbol.size);
    put(out, f::name, symbol.name);
}

void write(pbf_writer out, const Notice& notice) {
    namespace f = field::notice;
    put_text(out, f::code, notice.code);
    put_text(out, f::text, notice.text);
    put_text(out, f::remedy, notice.remedy);
}

void write(pbf_writer out, const ProcessUnwind& unwind) {
    namespace f = field::process_unwind;
    put(out, f::process, unwind.process);
    put(out, f::mode, static_cast<std::uint64_t>(unwind.mode));
    put_text(out, f::why, unwind.why);
    put(out, f::samples, unwind.samples);
    put(out, f::whole, unwind.whole);
    put(out, f::joined, unwind.joined);
    put(out, f::truncated, unwind.truncated);
    put(out, f::open_end, unwind.open_end);
    put(out, f::stopped, unwind.stopped);
    put(out, f::frames, unwind.frames);
    put(out, f::stack_bytes, unwind.stack_bytes);
}

void write(pbf_writer out, const CounterReading& reading) {
    namespace f = field::counters;
    Column name, unit, part, thread, cpu, status, value, enabled, running;
    for (const CounterValue& counter : reading.values) {
        name.add(counter.name);
        unit.add(counter.unit);
        part.add(counter.part);
        thread.add(counter.thread);
        cpu.add(counter.cpu_plus_1);
        status.add(static_cast<std::uint64_t>(counter.status));
        value.add(counter.value);
        enabled.add(counter.enabled_ns);
        running.add(counter.running_ns);
    }
    put(out, f::start_ns, reading.start_ns);
    put(out, f::end_ns, reading.end_ns);
    put(out, f::after_gap, reading.after_gap ? 1 : 0);
    name.write(out, f::name);
    unit.write(out, f::unit);
    part.write_unless_zero(out, f::part);
    thread.write_unless_zero(out, f::thread);
    cpu.write_unless_zero(out, f::cpu_plus_1);
    status.write_unless_zero(out, f::status);
    value.write(out, f::value);
    enabled.write(out, f::enabled_ns);
    running.write(out, f::running_ns);
}

void write(pbf_writer out, const Durations& durations) {
    namespace f = field::durations;
    Column bucket, count;
    std::uint32_t before = 0;
    for (const DurationCount& one : durations.counts) {
        bucket.add(one.bucket - before);
        before = one.bucket;
        count.add(one.count);
    }
    put(out, f::sum_ns, durations.sum_ns);
    put(out, f::min_ns, durations.min_ns);
    put(out, f::max_ns, durations.max_ns);
    bucket.write(out, f::bucket_delta);
    count.write(out, f::count);
}

void write(pbf_writer out, const ThreadTimes& times) {
    namespace f = field::thread_times;
    put(out, f::thread, times.thread);
    put(out, f::end_ns, times.end_ns);
    for (std::uint32_t state = 0; state < thread_states; ++state) put(out, f::run_ns + state, times.state_ns[state]);
    put(out, f::preempted, times.preempted);
    put(out, f::slept, times.slept);
    put(out, f::io_waits, times.io_waits);
    std::string message;
    for (const auto& [tag, durations] : {std::pair{f::slices, &times.slices}, std::pair{f::queued, &times.queued}}) {
        if (durations->counts.empty()) continue;
        message.clear();
        write(pbf_writer(message), *durations);
        out.add_message(tag, message);
    }
}

void write(pbf_writer out, const AgentStats& stats) {
    namespace f = field::agent;
    put(out, f::cpu_ns, stats.cpu_ns);
    put(out, f::rss_bytes, stats.rss_bytes);
    put(out, f::ring_bytes, stats.ring_bytes);
    put(out, f::samples_read, stats.samples_read);
    put(out, f::samples_duplicate, stats.samples_duplicate);
    put(out, f::samples_lost, stats.samples_lost);
    put(out, f::queue_batches, stats.queue_batches);
    put(out, f::spool_bytes, stats.spool_bytes);
    put(out, f::late_records, stats.late_records);
}

void write(pbf_writer out, const End& end) {
    namespace f = field::end;
    put_text(out, f::reason, end.reason);
    if (end.exit_code != 0) out.add_int32(f::exit_code, end.exit_code);
}

constexpr std::uint64_t max_weight = std::numeric_limits<std::int64_t>::max();

// Sorts into wire order, drops zero counts and merges equal keys. A count that does not fit in one row continues in the
// next one.
void normalize(std::vector<Row>& rows) {
    std::erase_if(rows, [](const Row& row) { return row.count == 0; });
    const auto key = [](const Row& row) { return std::tie(row.event, row.thread, row.cpu, row.stack, row.bucket); };
    // Orders by that key. Among equal keys, full rows come first, so that a second pass changes nothing. Written out
    // because the agent is built for size: std::tie would call a function for each field.
    const auto before = [](const Row& a, const Row& b) {
        if (a.event != b.event) return a.event < b.event;
        if (a.thread != b.thread) return a.thread < b.thread;
        if (a.cpu != b.cpu) return a.cpu < b.cpu;
        if (a.stack != b.stack) return a.stack < b.stack;
        if (a.bucket != b.bucket) return a.bucket < b.bucket;
        return a.count != b.count ? a.count > b.count : a.weight > b.weight;
    };
    // Imported rows are already sorted, by a faster method.
    if (!std::is_sorted(rows.begin(), rows.end(), before)) std::sort(rows.begin(), rows.end(), before);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        Row row = rows[i];
        if (kept > 0 && key(rows[kept - 1]) == key(row)) {
            Row& last = rows[kept - 1];
            const std::uint32_t room = std::numeric_limits<std::uint32_t>::max() - last.count;
            if (row.count <= room) {
                last.count += row.count;
                last.weight = std::min(last.weight + row.weight, max_weight);
                continue;
            }
            last.count += room;
            row.count -= room;
        }
        rows[kept++] = row;
    }
    rows.resize(kept);
}

// Limits weights to 63 bits and all rows to within 2^32 buckets of the newest, for any input.
void clamp(std::vector<Row>& rows) {
    std::uint64_t newest = 0;
    for (const Row& row : rows) newest = std::max(newest, row.bucket);
    const std::uint64_t reach = std::numeric_limits<std::uint32_t>::max() - 1U;
    const std::uint64_t oldest = newest > reach ? newest - reach : 0;
    for (Row& row : rows) {
        row.bucket = std::max(row.bucket, oldest);
        row.weight = std::min(row.weight, max_weight);
    }
}

void write(pbf_writer out, const std::vector<Row>& rows, std::uint32_t bucket_ns, const EventPeriods& periods) {
    namespace f = field::rows;
    std::uint64_t first_bucket = rows.front().bucket, last_bucket = first_bucket;
    for (const Row& row : rows) {
        first_bucket = std::min(first_bucket, row.bucket);
        last_bucket = std::max(last_bucket, row.bucket);
    }
    const std::uint64_t span = last_bucket - first_bucket + 1;

    Column group_event, group_thread, group_cpu, group_rows, keys, counts, weights;
    bool counts_are_one = true;
    for (std::size_t begin = 0; begin < rows.size();) {
        const Row& head = rows[begin];
        const std::uint64_t period = head.event < periods.size() ? periods[head.event] : 0;
        std::uint64_t previous_key = 0;
        std::size_t end = begin;
        for (; end < rows.size(); ++end) {
            const Row& row = rows[end];
            if (row.event != head.event || row.thread != head.thread || row.cpu != head.cpu) break;
            const std::uint64_t key = row.stack * span + (row.bucket - first_bucket);
            keys.add(key - previous_key);
            previous_key = key;
            counts.add(row.count);
            counts_are_one = counts_are_one && row.count == 1;
            weights.add_signed(static_cast<std::int64_t>(row.weight - row.count * period));
        }
        group_event.add(head.event);
        group_thread.add(head.thread);
        group_cpu.add(head.cpu);
        group_rows.add(end - begin);
        begin = end;
    }
    put(out, f::base_bucket, first_bucket);
    put(out, f::bucket_ns, bucket_ns);
    put(out, f::bucket_span, span);
    group_event.write(out, f::group_event);
    group_thread.write(out, f::group_thread);
    group_cpu.write(out, f::group_cpu);
    group_rows.write(out, f::group_rows);
    keys.write(out, f::key_delta);
    if (!counts_are_one) counts.write(out, f::count);
    weights.write_unless_zero(out, f::weight);
}

// Uses a separate buffer: a protozero sub-writer leaves out an empty message, so a table would lose an entry.
template <class... Args>
void add_message(pbf_writer& out, Tag tag, const Args&... args) {
    std::string message;
    write(pbf_writer(message), args...);
    out.add_message(tag, message);
}

template <class T>
void add_each(pbf_writer& out, Tag tag, const std::vector<T>& values) {
    for (const T& value : values) add_message(out, tag, value);
}

void write_tables(pbf_writer& out, const Batch& batch) {
    namespace f = field::batch;
    if (!batch.strings.empty()) out.add_uint32(f::string_base, batch.string_base);
    for (const std::string& text : batch.strings) out.add_bytes(f::strings, text);
    if (!batch.modules.empty()) out.add_uint32(f::module_base, batch.module_base);
    add_each(out, f::modules, batch.modules);
    // Stacks are also relative to location_base.
    if (!batch.locations.empty() || !batch.stacks.empty()) out.add_uint32(f::location_base, batch.location_base);
    if (!batch.locations.empty()) add_message(out, f::locations, batch.locations);
    if (!batch.stacks.empty()) {
        out.add_uint32(f::stack_base, batch.stack_base);
        add_message(out, f::stacks, batch.stacks, batch.stack_base, batch.location_base);
    }
    if (!batch.processes.empty()) out.add_uint32(f::process_base, batch.process_base);
    add_each(out, f::processes, batch.processes);
    if (!batch.threads.empty()) out.add_uint32(f::thread_base, batch.thread_base);
    add_each(out, f::threads, batch.threads);
    if (!batch.events.empty()) out.add_uint32(f::event_base, batch.event_base);
    add_each(out, f::events, batch.events);
}

}  // namespace

std::string encode(Batch& batch, const EventPeriods& periods) {
    namespace f = field::batch;
    clamp(batch.rows);
    normalize(batch.rows);

    std::string bytes;
    pbf_writer out(bytes);
    out.add_bytes(f::recording_id, reinterpret_cast<const char*>(batch.recording_id.data()), batch.recording_id.size());
    put(out, f::epoch, batch.epoch);
    put(out, f::seq, batch.seq);
    put(out, f::first_seq, batch.first_seq);
    put(out, f::monotonic_ns, batch.monotonic_ns);
    put_signed(out, f::realtime_ns, batch.realtime_ns);
    if (batch.recording) add_message(out, f::recording, *batch.recording);
    write_tables(out, batch);
    if (!batch.rows.empty()) add_message(out, f::rows, batch.rows, batch.bucket_ns, periods);
    add_each(out, f::lifecycle, batch.lifecycle);
    add_each(out, f::losses, batch.losses);
    add_each(out, f::symbols, batch.symbols);
    add_each(out, f::notices, batch.notices);
    if (batch.agent) add_message(out, f::agent, *batch.agent);
    if (batch.end) add_message(out, f::end, *batch.end);
    add_each(out, f::unwinds, batch.unwinds);
    add_each(out, f::counters, batch.counters);
    add_each(out, f::thread_times, batch.thread_times);
    return bytes;
}

}  // namespace flamewire::wire
