// The columns of a batch: locations, stack nodes, rows, counters, durations. Checks lengths before it reads values.
#include <limits>
#include <unordered_map>

#include "wire/batch_read.h"

namespace flamewire::wire::read {
namespace {

void get_column(pbf_reader& in, Column& column) {
    for (const std::uint64_t value : in.get_packed_uint64()) append(column, max_batch_rows) = value;
}

// An absent column stands for zeros.
void check_length(const Column& column, std::size_t length, bool may_be_absent) {
    if (column.size() != length && !(may_be_absent && column.empty()))
        throw Malformed{"columns have different lengths"};
}
std::uint64_t at(const Column& column, std::size_t index, std::uint64_t absent = 0) {
    return column.empty() ? absent : column[index];
}

void check_rows(const RowColumns& in) {
    for (const Column* column : {&in.group_thread, &in.group_cpu, &in.group_rows})
        check_length(*column, in.group_event.size(), false);
    check_length(in.count, in.key.size(), true);
    check_length(in.weight, in.key.size(), true);
    if (in.key.empty()) return;
    if (in.bucket_ns == 0 || in.bucket_span == 0) throw Malformed{"rows without a bucket width or span"};
    if (in.base_bucket > std::numeric_limits<std::uint64_t>::max() / in.bucket_ns - in.bucket_span)
        throw Malformed{"a time bucket is out of range"};
}

Row make_row(const RowColumns& in, std::size_t index, std::uint64_t key, std::uint64_t period, Row row) {
    row.stack = narrow(key / in.bucket_span);
    row.bucket = in.base_bucket + key % in.bucket_span;
    row.count = narrow(at(in.count, index, 1));
    if (row.count == 0) throw Malformed{"a row with count 0"};
    row.weight = row.count * period + static_cast<std::uint64_t>(protozero::decode_zigzag64(at(in.weight, index)));
    if (row.weight > std::numeric_limits<std::int64_t>::max()) throw Malformed{"a weight is out of range"};
    return row;
}

}  // namespace

std::vector<Location> locations(pbf_reader in) {
    namespace f = field::locations;
    Column module, address, flags, name, file, line;
    while (in.next()) {
        switch (in.tag_and_type()) {
            case bytes(f::module):
                get_column(in, module);
                break;
            case bytes(f::address_delta):
                get_column(in, address);
                break;
            case bytes(f::flags):
                get_column(in, flags);
                break;
            case bytes(f::name):
                get_column(in, name);
                break;
            case bytes(f::file):
                get_column(in, file);
                break;
            case bytes(f::line):
                get_column(in, line);
                break;
            default:
                in.skip();
        }
    }
    check_length(address, module.size(), false);
    for (const Column* column : {&flags, &name, &file, &line}) check_length(*column, module.size(), true);

    std::unordered_map<Id, std::uint64_t> previous;
    std::vector<Location> locations(module.size());
    for (std::size_t i = 0; i < locations.size(); ++i) {
        Location& location = locations[i];
        location.module = narrow(module[i]);
        std::uint64_t& before = previous[location.module];
        before += static_cast<std::uint64_t>(protozero::decode_zigzag64(address[i]));
        location.address = before;
        location.flags = narrow(at(flags, i));
        location.name = narrow(at(name, i));
        location.file = narrow(at(file, i));
        location.line = narrow(at(line, i));
    }
    return locations;
}

void stacks(pbf_reader in, StackColumns& columns) {
    namespace f = field::stacks;
    while (in.next()) {
        switch (in.tag_and_type()) {
            case bytes(f::parent_distance):
                get_column(in, columns.parent);
                break;
            case bytes(f::location_back):
                get_column(in, columns.location);
                break;
            default:
                in.skip();
        }
    }
}

std::vector<StackNode> make_stacks(const StackColumns& columns, Id stack_base, Id location_base) {
    check_length(columns.location, columns.parent.size(), false);
    std::vector<StackNode> stacks(columns.parent.size());
    Id next_new = location_base, own = stack_base;
    for (std::size_t i = 0; i < stacks.size(); ++i) {
        const Id distance = narrow(columns.parent[i]);
        if (distance == 0 || distance > own) throw Malformed{"a stack node has no parent before it"};
        stacks[i].parent = own - distance;
        // Modulo 2^32, as in the encoder: a location after next_new wraps around.
        stacks[i].location = next_new - narrow(columns.location[i]);
        if (stacks[i].location == std::numeric_limits<Id>::max()) throw Malformed{"a location id is out of range"};
        if (stacks[i].location >= next_new) next_new = stacks[i].location + 1;
        ++own;
    }
    return stacks;
}

void rows(pbf_reader in, RowColumns& rows) {
    namespace f = field::rows;
    while (in.next()) {
        switch (in.tag_and_type()) {
            case varint(f::base_bucket):
                rows.base_bucket = in.get_uint64();
                break;
            case varint(f::bucket_ns):
                rows.bucket_ns = get_u32(in);
                break;
            case varint(f::bucket_span):
                rows.bucket_span = get_u32(in);
                break;
            case bytes(f::group_event):
                get_column(in, rows.group_event);
                break;
            case bytes(f::group_thread):
                get_column(in, rows.group_thread);
                break;
            case bytes(f::group_cpu):
                get_column(in, rows.group_cpu);
                break;
            case bytes(f::group_rows):
                get_column(in, rows.group_rows);
                break;
            case bytes(f::key_delta):
                get_column(in, rows.key);
                break;
            case bytes(f::count):
                get_column(in, rows.count);
                break;
            case bytes(f::weight):
                get_column(in, rows.weight);
                break;
            default:
                in.skip();
        }
    }
}

std::vector<Row> make_rows(const RowColumns& in, const EventPeriods& periods) {
    check_rows(in);
    std::vector<Row> rows;
    rows.reserve(in.key.size());
    for (std::size_t group = 0; group < in.group_event.size(); ++group) {
        Row row;
        row.event = narrow(in.group_event[group]);
        row.thread = narrow(in.group_thread[group]);
        row.cpu = narrow(in.group_cpu[group]);
        if (row.event == 0 || row.event >= periods.size()) throw Malformed{"a row of an event that was not announced"};
        const std::uint64_t length = in.group_rows[group];
        if (length == 0 || length > in.key.size() - rows.size()) throw Malformed{"groups and rows do not match"};
        std::uint64_t key = 0;
        for (std::uint64_t i = 0; i < length; ++i) {
            const std::uint64_t delta = in.key[rows.size()];
            if (delta > std::numeric_limits<std::uint64_t>::max() - key) throw Malformed{"a row key is out of range"};
            key += delta;
            rows.push_back(make_row(in, rows.size(), key, periods[row.event], row));
        }
    }
    if (rows.size() != in.key.size()) throw Malformed{"groups and rows do not match"};
    return rows;
}

CounterReading counters(pbf_reader in) {
    namespace f = field::counters;
    CounterReading reading;
    Column name, unit, part, thread, cpu, status, value, enabled, running;
    while (in.next()) {
        switch (in.tag_and_type()) {
            case varint(f::start_ns):
                reading.start_ns = in.get_uint64();
                break;
            case varint(f::end_ns):
                reading.end_ns = in.get_uint64();
                break;
            case varint(f::after_gap):
                reading.after_gap = in.get_uint64() != 0;  // get_bool() would read past the end of cut-off input
                break;
            case bytes(f::name):
                get_column(in, name);
                break;
            case bytes(f::unit):
                get_column(in, unit);
                break;
            case bytes(f::part):
                get_column(in, part);
                break;
            case bytes(f::thread):
                get_column(in, thread);
                break;
            case bytes(f::cpu_plus_1):
                get_column(in, cpu);
                break;
            case bytes(f::status):
                get_column(in, status);
                break;
            case bytes(f::value):
                get_column(in, value);
                break;
            case bytes(f::enabled_ns):
                get_column(in, enabled);
                break;
            case bytes(f::running_ns):
                get_column(in, running);
                break;
            default:
                in.skip();
        }
    }
    if (reading.end_ns < reading.start_ns) throw Malformed{"a reading ends before it begins"};
    for (const Column* column : {&unit, &value, &enabled, &running}) check_length(*column, name.size(), false);
    for (const Column* column : {&part, &thread, &cpu, &status}) check_length(*column, name.size(), true);
    reading.values.resize(name.size());
    for (std::size_t i = 0; i < name.size(); ++i) {
        const std::uint64_t state = at(status, i);
        // For a status of a later version the value is unknown.
        const CounterStatus known = state <= static_cast<std::uint64_t>(CounterStatus::forbidden)
                                        ? static_cast<CounterStatus>(state)
                                        : CounterStatus::not_counted;
        reading.values[i] = {
            narrow(name[i]), narrow(unit[i]), narrow(at(part, i)), narrow(at(thread, i)), narrow(at(cpu, i)), known,
            value[i],        enabled[i],      running[i]};
    }
    return reading;
}

namespace {

Durations durations(pbf_reader in) {
    namespace f = field::durations;
    Durations durations;
    Column bucket, count;
    while (in.next()) {
        switch (in.tag_and_type()) {
            case varint(f::sum_ns):
                durations.sum_ns = in.get_uint64();
                break;
            case varint(f::min_ns):
                durations.min_ns = in.get_uint64();
                break;
            case varint(f::max_ns):
                durations.max_ns = in.get_uint64();
                break;
            case bytes(f::bucket_delta):
                get_column(in, bucket);
                break;
            case bytes(f::count):
                get_column(in, count);
                break;
            default:
                in.skip();
        }
    }
    check_length(count, bucket.size(), false);
    if (durations.max_ns < durations.min_ns) throw Malformed{"times whose longest is shorter than their shortest"};
    std::uint64_t at = 0;
    for (std::size_t i = 0; i < bucket.size(); ++i) {
        if (i > 0 && bucket[i] == 0) throw Malformed{"a bucket of times that is there twice"};
        if (bucket[i] >= duration_buckets) throw Malformed{"a bucket of times that does not exist"};
        at += bucket[i];
        if (at >= duration_buckets) throw Malformed{"a bucket of times that does not exist"};
        if (count[i] == 0) throw Malformed{"a bucket of times with count 0"};
        durations.counts.push_back({static_cast<std::uint32_t>(at), narrow(count[i])});
    }
    return durations;
}

}  // namespace

ThreadTimes thread_times(pbf_reader in) {
    namespace f = field::thread_times;
    ThreadTimes times;
    while (in.next()) {
        switch (in.tag_and_type()) {
            case varint(f::thread):
                times.thread = get_u32(in);
                break;
            case varint(f::end_ns):
                times.end_ns = in.get_uint64();
                break;
            case varint(f::run_ns):
            case varint(f::runnable_ns):
            case varint(f::blocked_ns):
            case varint(f::io_wait_ns):
                times.state_ns[in.tag() - f::run_ns] = in.get_uint64();
                break;
            case varint(f::preempted):
                times.preempted = get_u32(in);
                break;
            case varint(f::slept):
                times.slept = get_u32(in);
                break;
            case varint(f::io_waits):
                times.io_waits = get_u32(in);
                break;
            case bytes(f::slices):
                times.slices = durations(in.get_message());
                break;
            case bytes(f::queued):
                times.queued = durations(in.get_message());
                break;
            default:
                in.skip();
        }
    }
    std::uint64_t room = times.end_ns;
    for (const std::uint64_t part : times.state_ns) {
        if (part > room) throw Malformed{"an interval of a thread that is too long"};
        room -= part;
    }
    return times;
}

}  // namespace flamewire::wire::read
