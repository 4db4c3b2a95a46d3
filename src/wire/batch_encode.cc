// Batch values -> protobuf bytes.
#include <algorithm>
#include <limits>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "wire/batch.h"
#include "wire/batch_schema.h"

namespace flamewire::wire {

using proto::Field;
using proto::PackedColumn;
using proto::pbf_writer;
using proto::put;
using proto::put_message;

LocationColumns<PackedColumn> columns_of(const std::vector<Location>& locations) {
    LocationColumns<PackedColumn> columns;
    std::unordered_map<Id, std::uint64_t> previous;
    for (const Location& location : locations) {
        std::uint64_t& before = previous[location.module];
        columns.module.add(location.module);
        columns.address_delta.add_signed(static_cast<std::int64_t>(location.address - before));
        before = location.address;
        columns.flags.add(location.flags);
        columns.name.add(location.name);
        columns.file.add(location.file);
        columns.line.add(location.line);
    }
    return columns;
}

CounterColumns<PackedColumn> columns_of(const CounterReading& reading) {
    CounterColumns<PackedColumn> columns{
        reading.start_ns, reading.end_ns, reading.after_gap, {}, {}, {}, {}, {}, {}, {}, {}, {}};
    for (const CounterValue& counter : reading.values) {
        columns.name.add(counter.name);
        columns.unit.add(counter.unit);
        columns.part.add(counter.part);
        columns.thread.add(counter.thread);
        columns.cpu_plus_1.add(counter.cpu_plus_1);
        columns.status.add(static_cast<std::uint64_t>(counter.status));
        columns.value.add(counter.value);
        columns.enabled_ns.add(counter.enabled_ns);
        columns.running_ns.add(counter.running_ns);
    }
    return columns;
}

DurationColumns<PackedColumn> columns_of(const Durations& durations) {
    DurationColumns<PackedColumn> columns{durations.sum_ns, durations.min_ns, durations.max_ns, {}, {}};
    std::uint32_t before = 0;
    for (const DurationCount& one : durations.counts) {
        columns.bucket_delta.add(one.bucket - before);
        before = one.bucket;
        columns.count.add(one.count);
    }
    return columns;
}

HitColumns<PackedColumn> columns_of(const Hits& hits) {
    HitColumns<PackedColumn> columns{hits.event, hits.fields, hits.texts, hits.dropped, {}, {}, {}, {}, {}, {}, {}, {}};
    std::uint64_t before = 0;
    for (const Hit& hit : hits.hits) {
        columns.time_delta.add_signed(static_cast<std::int64_t>(hit.time_ns - std::exchange(before, hit.time_ns)));
        columns.thread.add(hit.thread);
        columns.cpu.add(hit.cpu);
        columns.stack.add(hit.stack);
        columns.weight.add(hit.weight - 1);
    }
    for (const std::uint64_t value : hits.values) columns.values.add(value);
    before = 0;
    for (const HitAddress& address : hits.addresses) {
        columns.address_delta.add(address.value - std::exchange(before, address.value));
        columns.location.add(address.location);
    }
    return columns;
}

namespace {

StackColumns<PackedColumn> columns_of(const std::vector<StackNode>& stacks, Id stack_base, Id location_base) {
    StackColumns<PackedColumn> columns;
    Id next_new = location_base, own = stack_base;
    for (const StackNode& node : stacks) {
        columns.parent_distance.add(own - node.parent);
        columns.location_back.add(next_new - node.location);
        if (node.location >= next_new) next_new = node.location + 1;
        ++own;
    }
    return columns;
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

RowColumns<PackedColumn> columns_of(const std::vector<Row>& rows, std::uint32_t bucket_ns,
                                    const EventPeriods& periods) {
    std::uint64_t first_bucket = rows.front().bucket, last_bucket = first_bucket;
    for (const Row& row : rows) {
        first_bucket = std::min(first_bucket, row.bucket);
        last_bucket = std::max(last_bucket, row.bucket);
    }
    const std::uint64_t span = last_bucket - first_bucket + 1;

    RowColumns<PackedColumn> columns;
    columns.base_bucket = first_bucket;
    columns.bucket_ns = bucket_ns;
    columns.bucket_span = static_cast<std::uint32_t>(span);
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
            columns.key_delta.add(key - previous_key);
            previous_key = key;
            columns.count.add(row.count);
            counts_are_one = counts_are_one && row.count == 1;
            columns.weight.add_signed(static_cast<std::int64_t>(row.weight - row.count * period));
        }
        columns.group_event.add(head.event);
        columns.group_thread.add(head.thread);
        columns.group_cpu.add(head.cpu);
        columns.group_rows.add(end - begin);
        begin = end;
    }
    if (counts_are_one) columns.count = {};
    return columns;
}

// Writes the fields of a batch, some of which depend on others.
struct BatchWriter {
    pbf_writer& out;
    const Batch& batch;
    const EventPeriods& periods;

    template <class Member>
    void field(Field<Member> field) const {
        put(out, field.tag, batch.*field.member);
    }
    void field(Field<std::vector<Row> Batch::*> field) const {
        if (!batch.rows.empty()) put_message(out, field.tag, columns_of(batch.rows, batch.bucket_ns, periods));
    }
    template <class Entries>
    void field(Table<Entries> table) const {
        const Entries& entries = batch.*table.entries;
        if (entries.empty()) return;
        base(table);
        put(out, table.tag, entries);
    }
    // Stacks are also relative to location_base.
    void field(Table<std::vector<Location>> table) const {
        if (!batch.locations.empty() || !batch.stacks.empty()) base(table);
        if (!batch.locations.empty()) put_message(out, table.tag, batch.locations);
    }
    void field(Table<std::vector<StackNode>> table) const {
        if (batch.stacks.empty()) return;
        base(table);
        put_message(out, table.tag, columns_of(batch.stacks, batch.stack_base, batch.location_base));
    }
    template <class Entries>
    void base(Table<Entries> table) const {
        out.add_uint32(table.base_tag, batch.*table.base);
    }
};

}  // namespace

std::string encode(Batch& batch, const EventPeriods& periods) {
    clamp(batch.rows);
    normalize(batch.rows);
    std::string bytes;
    pbf_writer out(bytes);
    const BatchWriter writer{out, batch, periods};
    std::apply([&](const auto&... field) { (writer.field(field), ...); }, batch_fields);
    return bytes;
}

}  // namespace flamewire::wire
