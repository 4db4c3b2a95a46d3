// Protobuf bytes -> batch values. Checks all untrusted input: types, ranges, column lengths, list lengths. Allocates at
// most a small multiple of the input size, and caps lists. protozero reports malformed input by exceptions, which are
// caught in this file.
#include <algorithm>
#include <cstring>
#include <limits>

#include "wire/batch_read.h"

namespace flamewire::wire {
namespace {

using protozero::pbf_reader;
using read::append;
using read::bytes;
using read::get_text;
using read::get_u32;
using read::Malformed;
using read::varint;

void get_recording_id(pbf_reader& in, RecordingId& id) {
    const protozero::data_view view = in.get_view();
    if (view.size() != id.size()) throw Malformed{"a recording id has 16 bytes"};
    std::memcpy(id.data(), view.data(), id.size());
}

// Reads a field of BatchHeader, in any order. Returns false for any other field.
template <class Target>
bool read_header_field(pbf_reader& in, Target& target) {
    namespace f = field::batch;
    switch (in.tag_and_type()) {
        case bytes(f::recording_id):
            get_recording_id(in, target.recording_id);
            return true;
        case varint(f::epoch):
            target.epoch = get_u32(in);
            return true;
        case varint(f::seq):
            target.seq = in.get_uint64();
            return true;
        case varint(f::first_seq):
            target.first_seq = in.get_uint64();
            return true;
        default:
            return false;
    }
}

template <class Target>
void check_header(const Target& header) {
    if (header.recording_id == RecordingId{}) throw Malformed{"no recording id"};
    if (header.epoch == 0 || header.seq == 0) throw Malformed{"epochs and batches count from 1"};
    if (header.first_seq > header.seq) throw Malformed{"first_seq is after seq"};
}

// Columns that can be converted to rows and stacks only after all fields are read.
struct Pending {
    read::StackColumns stacks;
    read::RowColumns rows;
};

bool read_table_field(pbf_reader& in, Batch& batch, Pending& pending) {
    namespace f = field::batch;
    switch (in.tag_and_type()) {
        case varint(f::string_base):
            batch.string_base = get_u32(in);
            return true;
        case bytes(f::strings):
            append(batch.strings, max_batch_entries) = get_text(in);
            return true;
        case varint(f::module_base):
            batch.module_base = get_u32(in);
            return true;
        case bytes(f::modules):
            append(batch.modules, max_batch_entries) = read::module(in.get_message());
            return true;
        case varint(f::location_base):
            batch.location_base = get_u32(in);
            return true;
        case bytes(f::locations):
            batch.locations = read::locations(in.get_message());
            return true;
        case varint(f::stack_base):
            batch.stack_base = get_u32(in);
            return true;
        case bytes(f::stacks):
            read::stacks(in.get_message(), pending.stacks);
            return true;
        case varint(f::process_base):
            batch.process_base = get_u32(in);
            return true;
        case bytes(f::processes):
            append(batch.processes, max_batch_entries) = read::process(in.get_message());
            return true;
        case varint(f::thread_base):
            batch.thread_base = get_u32(in);
            return true;
        case bytes(f::threads):
            append(batch.threads, max_batch_entries) = read::thread(in.get_message());
            return true;
        case varint(f::event_base):
            batch.event_base = get_u32(in);
            return true;
        case bytes(f::events):
            append(batch.events, max_batch_entries) = read::event(in.get_message());
            return true;
        default:
            return false;
    }
}

void read_other_field(pbf_reader& in, Batch& batch, Pending& pending) {
    namespace f = field::batch;
    switch (in.tag_and_type()) {
        case varint(f::monotonic_ns):
            batch.monotonic_ns = in.get_uint64();
            break;
        case varint(f::realtime_ns):
            batch.realtime_ns = in.get_int64();
            break;
        case bytes(f::recording):
            batch.recording = read::recording(in.get_message());
            break;
        case bytes(f::rows):
            read::rows(in.get_message(), pending.rows);
            break;
        case bytes(f::lifecycle):
            read::lifecycle(in.get_message(), batch.lifecycle);
            break;
        case bytes(f::losses):
            append(batch.losses, max_batch_entries) = read::loss(in.get_message());
            break;
        case bytes(f::symbols):
            append(batch.symbols, max_batch_entries) = read::symbol(in.get_message());
            break;
        case bytes(f::notices):
            append(batch.notices, max_batch_entries) = read::notice(in.get_message());
            break;
        case bytes(f::unwinds):
            append(batch.unwinds, max_batch_entries) = read::process_unwind(in.get_message());
            break;
        case bytes(f::counters):
            append(batch.counters, max_batch_entries) = read::counters(in.get_message());
            break;
        case bytes(f::thread_times):
            append(batch.thread_times, max_batch_entries) = read::thread_times(in.get_message());
            break;
        case bytes(f::agent):
            batch.agent = read::agent(in.get_message());
            break;
        case bytes(f::end):
            batch.end = read::end(in.get_message());
            break;
        default:
            in.skip();
    }
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
    Pending pending;
    pbf_reader in(data.data(), data.size());
    while (in.next()) {
        if (!read_header_field(in, batch) && !read_table_field(in, batch, pending))
            read_other_field(in, batch, pending);
    }
    check_header(batch);
    check_base(batch.stack_base, pending.stacks.parent.size());
    check_base(batch.location_base, batch.locations.size());
    batch.stacks = read::make_stacks(pending.stacks, batch.stack_base, batch.location_base);
    check_bases(batch);
    check_and_learn_periods(batch, periods, events);
    batch.bucket_ns = pending.rows.bucket_ns;
    if (events == EventTable::whole) {
        batch.rows = read::make_rows(pending.rows, periods);
    } else {
        EventPeriods padded = periods;
        padded.resize(std::max(padded.size(), max_events));
        batch.rows = read::make_rows(pending.rows, padded);
    }
    return batch;
}

std::unexpected<Error> not_a_batch(const char* what) {
    return fail(ErrorCode::invalid, std::string("not a batch: ") + what);
}

}  // namespace

void learn_periods(const Batch& batch, EventPeriods& periods) {
    const std::size_t needed = batch.events.empty() ? 1 : std::size_t{batch.event_base} + batch.events.size();
    const std::size_t known = std::max<std::size_t>(periods.size(), 1);
    if (periods.size() < needed) periods.resize(needed);
    for (std::size_t i = 0; i < batch.events.size(); ++i)
        if (batch.event_base + i >= known) periods[batch.event_base + i] = batch.events[i].period;
}

Result<Batch> decode(Bytes data, EventPeriods& periods, EventTable events) {
    try {
        EventPeriods updated = periods;
        Batch batch = read_batch(as_text(data), updated, events);
        periods = std::move(updated);
        return batch;
    } catch (const Malformed& malformed) {
        return not_a_batch(malformed.what);
    } catch (const protozero::exception&) {
        return not_a_batch("broken protobuf");
    }
}

Result<BatchHeader> peek_header(Bytes data) {
    try {
        BatchHeader header;
        const std::string_view text = as_text(data);
        pbf_reader in(text.data(), text.size());
        while (in.next())
            if (!read_header_field(in, header)) in.skip();
        check_header(header);
        return header;
    } catch (const Malformed& malformed) {
        return not_a_batch(malformed.what);
    } catch (const protozero::exception&) {
        return not_a_batch("broken protobuf");
    }
}

}  // namespace flamewire::wire
