// Protobuf bytes -> batch values. Checks all untrusted input: types, ranges, column lengths, list lengths. Allocates at
// most a small multiple of the input size, and caps lists. protozero reports malformed input by exceptions, which are
// caught in this file.
#include <algorithm>
#include <limits>
#include <unordered_map>

#include "wire/batch.h"
#include "wire/batch_schema.h"

namespace flamewire::wire {

using proto::Column;
using proto::Field;
using proto::Malformed;
using proto::narrow;
using proto::pbf_reader;
using proto::read_fields;
using proto::read_if;

namespace {

void check_lengths(std::size_t length, std::initializer_list<const Column*> columns) {
    for (const Column* column : columns)
        if (column->size() != length) throw Malformed{"columns have different lengths"};
}
// An absent column stands for zeros.
void check_sparse_lengths(std::size_t length, std::initializer_list<const Column*> columns) {
    for (const Column* column : columns)
        if (!column->empty()) check_lengths(length, {column});
}
std::uint64_t at(const Column& column, std::size_t index, std::uint64_t absent = 0) {
    return column.empty() ? absent : column[index];
}

std::vector<StackNode> make_stacks(const StackColumns<Column>& columns, Id stack_base, Id location_base) {
    check_lengths(columns.parent_distance.size(), {&columns.location_back});
    std::vector<StackNode> stacks(columns.parent_distance.size());
    Id next_new = location_base, own = stack_base;
    for (std::size_t i = 0; i < stacks.size(); ++i) {
        const Id distance = narrow(columns.parent_distance[i]);
        if (distance == 0 || distance > own) throw Malformed{"a stack node has no parent before it"};
        stacks[i].parent = own - distance;
        // Modulo 2^32, as in the encoder: a location after next_new wraps around.
        stacks[i].location = next_new - narrow(columns.location_back[i]);
        if (stacks[i].location == std::numeric_limits<Id>::max()) throw Malformed{"a location id is out of range"};
        if (stacks[i].location >= next_new) next_new = stacks[i].location + 1;
        ++own;
    }
    return stacks;
}

void check_rows(const RowColumns<Column>& in) {
    check_lengths(in.group_event.size(), {&in.group_thread, &in.group_cpu, &in.group_rows});
    check_sparse_lengths(in.key_delta.size(), {&in.count, &in.weight});
    if (in.key_delta.empty()) return;
    if (in.bucket_ns == 0 || in.bucket_span == 0) throw Malformed{"rows without a bucket width or span"};
    if (in.base_bucket > std::numeric_limits<std::uint64_t>::max() / in.bucket_ns - in.bucket_span)
        throw Malformed{"a time bucket is out of range"};
}

Row make_row(const RowColumns<Column>& in, std::size_t index, std::uint64_t key, std::uint64_t period, Row row) {
    row.stack = narrow(key / in.bucket_span);
    row.bucket = in.base_bucket + key % in.bucket_span;
    row.count = narrow(at(in.count, index, 1));
    if (row.count == 0) throw Malformed{"a row with count 0"};
    row.weight = row.count * period + static_cast<std::uint64_t>(protozero::decode_zigzag64(at(in.weight, index)));
    if (row.weight > std::numeric_limits<std::int64_t>::max()) throw Malformed{"a weight is out of range"};
    return row;
}

std::vector<Row> make_rows(const RowColumns<Column>& in, const EventPeriods& periods) {
    check_rows(in);
    std::vector<Row> rows;
    rows.reserve(in.key_delta.size());
    for (std::size_t group = 0; group < in.group_event.size(); ++group) {
        Row row;
        row.event = narrow(in.group_event[group]);
        row.thread = narrow(in.group_thread[group]);
        row.cpu = narrow(in.group_cpu[group]);
        if (row.event == 0 || row.event >= periods.size()) throw Malformed{"a row of an event that was not announced"};
        const std::uint64_t length = in.group_rows[group];
        if (length == 0 || length > in.key_delta.size() - rows.size()) throw Malformed{"groups and rows do not match"};
        std::uint64_t key = 0;
        for (std::uint64_t i = 0; i < length; ++i) {
            const std::uint64_t delta = in.key_delta[rows.size()];
            if (delta > std::numeric_limits<std::uint64_t>::max() - key) throw Malformed{"a row key is out of range"};
            key += delta;
            rows.push_back(make_row(in, rows.size(), key, periods[row.event], row));
        }
    }
    if (rows.size() != in.key_delta.size()) throw Malformed{"groups and rows do not match"};
    return rows;
}

// Reads the fields of a batch. Some columns become values only after all fields are read.
struct BatchReader {
    pbf_reader& in;
    Batch& batch;
    StackColumns<Column> stacks{};
    RowColumns<Column> rows{};

    // Each returns false if the current field of `in` is another one.
    template <class Member>
    bool field(Field<Member> field) {
        return read_if(in, field.tag, field.limit, batch.*field.member);
    }
    bool field(Field<std::vector<Row> Batch::*> field) { return columns(field.tag, rows); }
    template <class Entries>
    bool field(Table<Entries> table) {
        return base(table) || read_if(in, table.tag, max_batch_entries, batch.*table.entries);
    }
    // Several messages of locations replace each other.
    bool field(Table<std::vector<Location>> table) {
        if (base(table)) return true;
        if (in.tag_and_type() != proto::bytes(table.tag)) return false;
        read_columns(in.get_message(), batch.locations);
        return true;
    }
    bool field(Table<std::vector<StackNode>> table) { return base(table) || columns(table.tag, stacks); }

    template <class Entries>
    bool base(Table<Entries> table) {
        return read_if(in, table.base_tag, 0, batch.*table.base);
    }
    // The columns of several such messages are joined.
    template <class Columns>
    bool columns(proto::Tag tag, Columns& columns) {
        if (in.tag_and_type() != proto::bytes(tag)) return false;
        read_fields(in.get_message(), columns);
        return true;
    }
};

template <class Header>
void check_header(const Header& header) {
    if (header.recording_id == RecordingId{}) throw Malformed{"no recording id"};
    if (header.epoch == 0 || header.seq == 0) throw Malformed{"epochs and batches count from 1"};
    if (header.first_seq > header.seq) throw Malformed{"first_seq is after seq"};
}

void check_base(Id base, std::size_t entries) {
    if (base == 0 || entries > std::numeric_limits<Id>::max() - base) throw Malformed{"table ids are out of range"};
}

void check_bases(const Batch& batch) {
    check_base(batch.string_base, batch.strings.size());
    check_base(batch.module_base, batch.modules.size());
    check_base(batch.location_base, batch.locations.size());
    check_base(batch.stack_base, batch.stacks.size());
    check_base(batch.process_base, batch.processes.size());
    check_base(batch.thread_base, batch.threads.size());
    check_base(batch.event_base, batch.events.size());
}

// Adds the periods of the batch's events, which must continue the known ones.
void check_and_learn_periods(const Batch& batch, EventPeriods& periods, EventTable events) {
    if (batch.events.empty()) return;
    if (events == EventTable::whole && batch.event_base > std::max<std::size_t>(periods.size(), 1))
        throw Malformed{"events are missing"};
    if (batch.event_base + batch.events.size() > max_events) throw Malformed{"too many events"};
    learn_periods(batch, periods);
}

Batch read_batch(std::string_view data, EventPeriods& periods, EventTable events) {
    Batch batch;
    batch.epoch = 0;
    pbf_reader in(data.data(), data.size());
    BatchReader reader{in, batch};
    while (in.next()) {
        const auto read_one = [&](const auto&... field) { return (reader.field(field) || ...); };
        if (!std::apply(read_one, batch_fields)) in.skip();
    }
    check_header(batch);
    check_base(batch.stack_base, reader.stacks.parent_distance.size());
    check_base(batch.location_base, batch.locations.size());
    batch.stacks = make_stacks(reader.stacks, batch.stack_base, batch.location_base);
    check_bases(batch);
    check_and_learn_periods(batch, periods, events);
    batch.bucket_ns = reader.rows.bucket_ns;
    if (events == EventTable::whole) {
        batch.rows = make_rows(reader.rows, periods);
    } else {
        EventPeriods padded = periods;
        padded.resize(std::max(padded.size(), max_events));
        batch.rows = make_rows(reader.rows, padded);
    }
    return batch;
}

// Calls read(), which can throw.
template <class Read>
auto decoded(const Read& read) -> Result<decltype(read())> {
    try {
        return read();
    } catch (const Malformed& malformed) {
        return fail(ErrorCode::invalid, std::string("not a batch: ") + malformed.what);
    } catch (const protozero::exception&) {
        return fail(ErrorCode::invalid, "not a batch: broken protobuf");
    }
}

}  // namespace

void read_columns(pbf_reader in, std::vector<Location>& locations) {
    LocationColumns<Column> columns;
    read_fields(in, columns);
    const std::size_t length = columns.module.size();
    check_lengths(length, {&columns.address_delta});
    check_sparse_lengths(length, {&columns.flags, &columns.name, &columns.file, &columns.line});
    std::unordered_map<Id, std::uint64_t> previous;
    locations.resize(length);
    for (std::size_t i = 0; i < length; ++i) {
        Location& location = locations[i];
        location.module = narrow(columns.module[i]);
        std::uint64_t& before = previous[location.module];
        before += static_cast<std::uint64_t>(protozero::decode_zigzag64(columns.address_delta[i]));
        location.address = before;
        location.flags = narrow(at(columns.flags, i));
        location.name = narrow(at(columns.name, i));
        location.file = narrow(at(columns.file, i));
        location.line = narrow(at(columns.line, i));
    }
}

void read_columns(pbf_reader in, CounterReading& reading) {
    CounterColumns<Column> columns;
    read_fields(in, columns);
    if (columns.end_ns < columns.start_ns) throw Malformed{"a reading ends before it begins"};
    const std::size_t length = columns.name.size();
    check_lengths(length, {&columns.unit, &columns.value, &columns.enabled_ns, &columns.running_ns});
    check_sparse_lengths(length, {&columns.part, &columns.thread, &columns.cpu_plus_1, &columns.status});
    reading = {columns.start_ns, columns.end_ns, columns.after_gap, std::vector<CounterValue>(length)};
    for (std::size_t i = 0; i < length; ++i)
        reading.values[i] = {narrow(columns.name[i]),
                             narrow(columns.unit[i]),
                             narrow(at(columns.part, i)),
                             narrow(at(columns.thread, i)),
                             narrow(at(columns.cpu_plus_1, i)),
                             proto::EnumNumbers<CounterStatus>::enumerator(at(columns.status, i)),
                             columns.value[i],
                             columns.enabled_ns[i],
                             columns.running_ns[i]};
}

void read_columns(pbf_reader in, Durations& durations) {
    DurationColumns<Column> columns;
    read_fields(in, columns);
    const Column& bucket = columns.bucket_delta;
    check_lengths(bucket.size(), {&columns.count});
    durations.sum_ns = columns.sum_ns;
    durations.min_ns = columns.min_ns;
    durations.max_ns = columns.max_ns;
    if (durations.max_ns < durations.min_ns) throw Malformed{"times whose longest is shorter than their shortest"};
    std::uint64_t at = 0;
    for (std::size_t i = 0; i < bucket.size(); ++i) {
        if (i > 0 && bucket[i] == 0) throw Malformed{"a bucket of times that is there twice"};
        if (bucket[i] >= duration_buckets) throw Malformed{"a bucket of times that does not exist"};
        at += bucket[i];
        if (at >= duration_buckets) throw Malformed{"a bucket of times that does not exist"};
        if (columns.count[i] == 0) throw Malformed{"a bucket of times with count 0"};
        durations.counts.push_back({static_cast<std::uint32_t>(at), narrow(columns.count[i])});
    }
}

void read_columns(pbf_reader in, Hits& hits) {
    HitColumns<Column> columns;
    read_fields(in, columns);
    const std::size_t length = columns.time_delta.size();
    std::size_t text_bytes = 0;
    for (const std::string& text : columns.texts) text_bytes += text.size();
    if (text_bytes > 2 * max_hit_text_bytes) throw Malformed{"hits with too many texts"};
    if (columns.fields > max_event_fields) throw Malformed{"an event with too many fields"};
    check_lengths(length, {&columns.thread, &columns.cpu, &columns.stack});
    check_sparse_lengths(length, {&columns.weight});
    check_lengths(length * columns.fields, {&columns.values});
    check_lengths(columns.address_delta.size(), {&columns.location});
    hits.event = columns.event;
    hits.fields = columns.fields;
    hits.dropped = columns.dropped;
    hits.texts = std::move(columns.texts);
    hits.values = std::move(columns.values);
    hits.hits.reserve(length);
    std::uint64_t time_ns = 0;
    for (std::size_t i = 0; i < length; ++i) {
        time_ns += static_cast<std::uint64_t>(protozero::decode_zigzag64(columns.time_delta[i]));
        hits.hits.push_back({time_ns, narrow(columns.thread[i]), narrow(columns.cpu[i]), narrow(columns.stack[i]),
                             at(columns.weight, i) + 1});
    }
    HitAddress address;
    for (std::size_t i = 0; i < columns.location.size(); ++i) {
        if (columns.address_delta[i] > std::numeric_limits<std::uint64_t>::max() - address.value)
            throw Malformed{"an address is out of range"};
        address.value += columns.address_delta[i];
        address.location = narrow(columns.location[i]);
        hits.addresses.push_back(address);
    }
}

void check(const Event& event) {
    if (event.print_format.size() > max_print_format) throw Malformed{"an event with a long print format"};
}

void check(const ThreadTimes& times) {
    for (const std::uint64_t count : {times.preempted, times.slept, times.io_waits}) narrow(count);
    std::uint64_t room = times.end_ns;
    for (const std::uint64_t part : times.state_ns) {
        if (part > room) throw Malformed{"an interval of a thread that is too long"};
        room -= part;
    }
}

void learn_periods(const Batch& batch, EventPeriods& periods) {
    const std::size_t needed = batch.events.empty() ? 1 : std::size_t{batch.event_base} + batch.events.size();
    const std::size_t known = std::max<std::size_t>(periods.size(), 1);
    if (periods.size() < needed) periods.resize(needed);
    for (std::size_t i = 0; i < batch.events.size(); ++i)
        if (batch.event_base + i >= known) periods[batch.event_base + i] = batch.events[i].period;
}

Result<Batch> decode(Bytes data, EventPeriods& periods, EventTable events) {
    EventPeriods updated = periods;
    Result<Batch> batch = decoded([&] { return read_batch(as_text(data), updated, events); });
    if (batch) periods = std::move(updated);
    return batch;
}

Result<BatchHeader> peek_header(Bytes data) {
    return decoded([&] {
        BatchHeader header;
        const std::string_view text = as_text(data);
        pbf_reader in(text.data(), text.size());
        while (in.next()) {
            const auto read_one = [&](const auto&... field) {
                return (read_if(in, field.tag, 0, header.*field.member) || ...);
            };
            if (!std::apply(read_one, header_fields<BatchHeader>)) in.skip();
        }
        check_header(header);
        return header;
    });
}

}  // namespace flamewire::wire
