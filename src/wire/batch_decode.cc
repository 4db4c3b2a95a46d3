// Protobuf bytes -> batch values. Everything from outside is checked: types, ranges, column lengths, list lengths. What is
// allocated is a small multiple of the input, and lists are capped. protozero reports malformed input by exceptions; they end here.
#include <limits>
#include <protozero/pbf_reader.hpp>
#include <unordered_map>

#include "wire/batch.h"
#include "wire/batch_fields.h"

namespace flamewire::wire {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;
using Tag = field::Tag;

// What is wrong, for the sentence; thrown and caught in this file only.
struct Malformed {
    const char* what;
};

constexpr std::uint32_t varint(Tag tag) { return protozero::tag_and_type(tag, pbf_wire_type::varint); }
constexpr std::uint32_t bytes(Tag tag) { return protozero::tag_and_type(tag, pbf_wire_type::length_delimited); }

std::uint32_t narrow(std::uint64_t value) {
    if (value > std::numeric_limits<std::uint32_t>::max()) throw Malformed{"a number is too large for its field"};
    return static_cast<std::uint32_t>(value);
}
std::uint32_t get_u32(pbf_reader& in) { return narrow(in.get_uint64()); }

std::string get_text(pbf_reader& in) {
    const protozero::data_view view = in.get_view();
    return {view.data(), view.size()};
}

template <class T>
T& append(std::vector<T>& list, std::size_t limit) {
    if (list.size() >= limit) throw Malformed{"a list is longer than a batch may have"};
    return list.emplace_back();
}

using Column = std::vector<std::uint64_t>;

void get_column(pbf_reader& in, Column& column) {
    for (const std::uint64_t value : in.get_packed_uint64()) append(column, max_batch_rows) = value;
}

// An absent column is one of zeros.
void check_length(const Column& column, std::size_t length, bool may_be_absent) {
    if (column.size() != length && !(may_be_absent && column.empty()))
        throw Malformed{"columns have different lengths"};
}
std::uint64_t at(const Column& column, std::size_t index, std::uint64_t absent = 0) {
    return column.empty() ? absent : column[index];
}

Recording read_recording(pbf_reader in) {
    namespace f = field::recording;
    Recording recording;
    while (in.next()) {
        switch (in.tag_and_type()) {
            case bytes(f::target): recording.target = get_text(in); break;
            case bytes(f::pids):
                for (const std::uint64_t pid : in.get_packed_uint64())
                    append(recording.pids, max_batch_entries) = narrow(pid);
                break;
            case bytes(f::host): recording.host = get_text(in); break;
            case bytes(f::arch): recording.arch = get_text(in); break;
            case bytes(f::kernel_release): recording.kernel_release = get_text(in); break;
            case bytes(f::agent_version): recording.agent_version = get_text(in); break;
            case bytes(f::boot_id): recording.boot_id = get_text(in); break;
            case varint(f::frequency_hz): recording.frequency_hz = get_u32(in); break;
            case varint(f::period): recording.period = in.get_uint64(); break;
            case varint(f::effective_frequency_hz): recording.effective_frequency_hz = get_u32(in); break;
            case bytes(f::unwind): recording.unwind = get_text(in); break;
            case varint(f::kernel): recording.kernel = in.get_uint64() != 0; break;
            case varint(f::interval_ms): recording.interval_ms = get_u32(in); break;
            case varint(f::start_ns): recording.start_ns = in.get_uint64(); break;
            case varint(f::page_size): recording.page_size = get_u32(in); break;
            case varint(f::cpus): recording.cpus = get_u32(in); break;
            default: in.skip();
        }
    }
    return recording;
}

Module read_module(pbf_reader in) {
    namespace f = field::module;
    Module module;
    while (in.next()) {
        switch (in.tag_and_type()) {
            case varint(f::kind): {
                const std::uint64_t kind = in.get_uint64();
                // A kind that came after this version is some file.
                module.kind = kind <= static_cast<std::uint64_t>(ModuleKind::jit) ? static_cast<ModuleKind>(kind)
                                                                                  : ModuleKind::file;
                break;
            }
            case varint(f::path): module.path = get_u32(in); break;
            case bytes(f::build_id): module.build_id = get_text(in); break;
            case varint(f::device): module.device = in.get_uint64(); break;
            case varint(f::inode): module.inode = in.get_uint64(); break;
            case varint(f::size): module.size = in.get_uint64(); break;
            case varint(f::mtime_ns): module.mtime_ns = in.get_int64(); break;
            default: in.skip();
        }
    }
    return module;
}

std::vector<Location> read_locations(pbf_reader in) {
    namespace f = field::locations;
    Column module, address, flags, name, file, line;
    while (in.next()) {
        switch (in.tag_and_type()) {
            case bytes(f::module): get_column(in, module); break;
            case bytes(f::address_delta): get_column(in, address); break;
            case bytes(f::flags): get_column(in, flags); break;
            case bytes(f::name): get_column(in, name); break;
            case bytes(f::file): get_column(in, file); break;
            case bytes(f::line): get_column(in, line); break;
            default: in.skip();
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

struct StackColumns {
    Column parent, location;
};

void read_stacks(pbf_reader in, StackColumns& columns) {
    namespace f = field::stacks;
    while (in.next()) {
        switch (in.tag_and_type()) {
            case bytes(f::parent_distance): get_column(in, columns.parent); break;
            case bytes(f::location_back): get_column(in, columns.location); break;
            default: in.skip();
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
        // Modulo 2^32, as the encoder counts: a location that is ahead wraps.
        stacks[i].location = next_new - narrow(columns.location[i]);
        if (stacks[i].location == std::numeric_limits<Id>::max()) throw Malformed{"a location id is out of range"};
        if (stacks[i].location >= next_new) next_new = stacks[i].location + 1;
        ++own;
    }
    return stacks;
}

Process read_process(pbf_reader in) {
    namespace f = field::process;
    Process process;
    while (in.next()) {
        switch (in.tag_and_type()) {
            case varint(f::pid): process.pid = get_u32(in); break;
            case varint(f::ns_pid): process.ns_pid = get_u32(in); break;
            case varint(f::parent_pid): process.parent_pid = get_u32(in); break;
            case varint(f::start_time_ns): process.start_time_ns = in.get_uint64(); break;
            case varint(f::exec_generation): process.exec_generation = get_u32(in); break;
            case varint(f::comm): process.comm = get_u32(in); break;
            case varint(f::exe): process.exe = get_u32(in); break;
            case varint(f::command_line): process.command_line = get_u32(in); break;
            case varint(f::cgroup): process.cgroup = get_u32(in); break;
            case varint(f::container_id): process.container_id = get_u32(in); break;
            default: in.skip();
        }
    }
    return process;
}

Thread read_thread(pbf_reader in) {
    namespace f = field::thread;
    Thread thread;
    while (in.next()) {
        switch (in.tag_and_type()) {
            case varint(f::process): thread.process = get_u32(in); break;
            case varint(f::tid): thread.tid = get_u32(in); break;
            case varint(f::comm): thread.comm = get_u32(in); break;
            default: in.skip();
        }
    }
    return thread;
}

Event read_event(pbf_reader in) {
    namespace f = field::event;
    Event event;
    while (in.next()) {
        switch (in.tag_and_type()) {
            case varint(f::name): event.name = get_u32(in); break;
            case varint(f::unit): event.unit = get_u32(in); break;
            case varint(f::frequency_hz): event.frequency_hz = get_u32(in); break;
            case varint(f::period): event.period = in.get_uint64(); break;
            default: in.skip();
        }
    }
    return event;
}

struct RowColumns {
    std::uint64_t base_bucket = 0, bucket_span = 0;
    std::uint32_t bucket_ns = default_bucket_ns;
    Column group_event, group_thread, group_cpu, group_rows, key, count, weight;
};

void read_rows(pbf_reader in, RowColumns& rows) {
    namespace f = field::rows;
    while (in.next()) {
        switch (in.tag_and_type()) {
            case varint(f::base_bucket): rows.base_bucket = in.get_uint64(); break;
            case varint(f::bucket_ns): rows.bucket_ns = get_u32(in); break;
            case varint(f::bucket_span): rows.bucket_span = get_u32(in); break;
            case bytes(f::group_event): get_column(in, rows.group_event); break;
            case bytes(f::group_thread): get_column(in, rows.group_thread); break;
            case bytes(f::group_cpu): get_column(in, rows.group_cpu); break;
            case bytes(f::group_rows): get_column(in, rows.group_rows); break;
            case bytes(f::key_delta): get_column(in, rows.key); break;
            case bytes(f::count): get_column(in, rows.count); break;
            case bytes(f::weight): get_column(in, rows.weight); break;
            default: in.skip();
        }
    }
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

// Nothing for a kind that came after this version.
void read_lifecycle(pbf_reader in, std::vector<Lifecycle>& list) {
    namespace f = field::lifecycle;
    Lifecycle lifecycle;
    bool known = true;
    while (in.next()) {
        switch (in.tag_and_type()) {
            case varint(f::kind): {
                const std::uint64_t kind = in.get_uint64();
                known = kind <= static_cast<std::uint64_t>(LifecycleKind::comm);
                if (known) lifecycle.kind = static_cast<LifecycleKind>(kind);
                break;
            }
            case varint(f::time_ns): lifecycle.time_ns = in.get_uint64(); break;
            case varint(f::thread): lifecycle.thread = get_u32(in); break;
            case varint(f::comm): lifecycle.comm = get_u32(in); break;
            default: in.skip();
        }
    }
    if (known) append(list, max_batch_entries) = lifecycle;
}

Loss read_loss(pbf_reader in) {
    namespace f = field::loss;
    Loss loss;
    while (in.next()) {
        switch (in.tag_and_type()) {
            case varint(f::reason): {
                const std::uint64_t reason = in.get_uint64();
                loss.reason = reason <= static_cast<std::uint64_t>(LossReason::other_server)
                                  ? static_cast<LossReason>(reason)
                                  : LossReason::unknown;
                break;
            }
            case varint(f::count): loss.count = in.get_uint64(); break;
            case varint(f::first_ns): loss.first_ns = in.get_uint64(); break;
            case varint(f::last_ns): loss.last_ns = in.get_uint64(); break;
            case varint(f::event): loss.event = get_u32(in); break;
            case varint(f::cpu_plus_1): loss.cpu_plus_1 = get_u32(in); break;
            default: in.skip();
        }
    }
    return loss;
}

Symbol read_symbol(pbf_reader in) {
    namespace f = field::symbol;
    Symbol symbol;
    while (in.next()) {
        switch (in.tag_and_type()) {
            case varint(f::module): symbol.module = get_u32(in); break;
            case varint(f::address): symbol.address = in.get_uint64(); break;
            case varint(f::size): symbol.size = in.get_uint64(); break;
            case varint(f::name): symbol.name = get_u32(in); break;
            default: in.skip();
        }
    }
    return symbol;
}

Notice read_notice(pbf_reader in) {
    namespace f = field::notice;
    Notice notice;
    while (in.next()) {
        switch (in.tag_and_type()) {
            case bytes(f::code): notice.code = get_text(in); break;
            case bytes(f::text): notice.text = get_text(in); break;
            case bytes(f::remedy): notice.remedy = get_text(in); break;
            default: in.skip();
        }
    }
    return notice;
}

AgentStats read_agent(pbf_reader in) {
    namespace f = field::agent;
    AgentStats stats;
    while (in.next()) {
        switch (in.tag_and_type()) {
            case varint(f::cpu_ns): stats.cpu_ns = in.get_uint64(); break;
            case varint(f::rss_bytes): stats.rss_bytes = in.get_uint64(); break;
            case varint(f::ring_bytes): stats.ring_bytes = in.get_uint64(); break;
            case varint(f::samples_read): stats.samples_read = in.get_uint64(); break;
            case varint(f::samples_duplicate): stats.samples_duplicate = in.get_uint64(); break;
            case varint(f::samples_lost): stats.samples_lost = in.get_uint64(); break;
            case varint(f::queue_batches): stats.queue_batches = get_u32(in); break;
            case varint(f::spool_bytes): stats.spool_bytes = in.get_uint64(); break;
            case varint(f::late_records): stats.late_records = get_u32(in); break;
            default: in.skip();
        }
    }
    return stats;
}

End read_end(pbf_reader in) {
    namespace f = field::end;
    End end;
    while (in.next()) {
        switch (in.tag_and_type()) {
            case bytes(f::reason): end.reason = get_text(in); break;
            case varint(f::exit_code): end.exit_code = in.get_int32(); break;
            default: in.skip();
        }
    }
    return end;
}

void get_recording_id(pbf_reader& in, RecordingId& id) {
    const protozero::data_view view = in.get_view();
    if (view.size() != id.size()) throw Malformed{"a recording id has 16 bytes"};
    std::memcpy(id.data(), view.data(), id.size());
}

// The fields of BatchHeader, wherever they stand; false for any other field.
template <class Target>
bool read_header_field(pbf_reader& in, Target& target) {
    namespace f = field::batch;
    switch (in.tag_and_type()) {
        case bytes(f::recording_id): get_recording_id(in, target.recording_id); return true;
        case varint(f::epoch): target.epoch = get_u32(in); return true;
        case varint(f::seq): target.seq = in.get_uint64(); return true;
        case varint(f::first_seq): target.first_seq = in.get_uint64(); return true;
        default: return false;
    }
}

template <class Target>
void check_header(const Target& header) {
    if (header.recording_id == RecordingId{}) throw Malformed{"no recording id"};
    if (header.epoch == 0 || header.seq == 0) throw Malformed{"epochs and batches count from 1"};
    if (header.first_seq > header.seq) throw Malformed{"first_seq is after seq"};
}

// What can be made into rows and stacks only when all fields are known.
struct Pending {
    StackColumns stacks;
    RowColumns rows;
};

bool read_table_field(pbf_reader& in, Batch& batch, Pending& pending) {
    namespace f = field::batch;
    switch (in.tag_and_type()) {
        case varint(f::string_base): batch.string_base = get_u32(in); return true;
        case bytes(f::strings): append(batch.strings, max_batch_entries) = get_text(in); return true;
        case varint(f::module_base): batch.module_base = get_u32(in); return true;
        case bytes(f::modules): append(batch.modules, max_batch_entries) = read_module(in.get_message()); return true;
        case varint(f::location_base): batch.location_base = get_u32(in); return true;
        case bytes(f::locations): batch.locations = read_locations(in.get_message()); return true;
        case varint(f::stack_base): batch.stack_base = get_u32(in); return true;
        case bytes(f::stacks): read_stacks(in.get_message(), pending.stacks); return true;
        case varint(f::process_base): batch.process_base = get_u32(in); return true;
        case bytes(f::processes):
            append(batch.processes, max_batch_entries) = read_process(in.get_message());
            return true;
        case varint(f::thread_base): batch.thread_base = get_u32(in); return true;
        case bytes(f::threads): append(batch.threads, max_batch_entries) = read_thread(in.get_message()); return true;
        case varint(f::event_base): batch.event_base = get_u32(in); return true;
        case bytes(f::events): append(batch.events, max_batch_entries) = read_event(in.get_message()); return true;
        default: return false;
    }
}

void read_other_field(pbf_reader& in, Batch& batch, Pending& pending) {
    namespace f = field::batch;
    switch (in.tag_and_type()) {
        case varint(f::monotonic_ns): batch.monotonic_ns = in.get_uint64(); break;
        case varint(f::realtime_ns): batch.realtime_ns = in.get_int64(); break;
        case bytes(f::recording): batch.recording = read_recording(in.get_message()); break;
        case bytes(f::rows): read_rows(in.get_message(), pending.rows); break;
        case bytes(f::lifecycle): read_lifecycle(in.get_message(), batch.lifecycle); break;
        case bytes(f::losses): append(batch.losses, max_batch_entries) = read_loss(in.get_message()); break;
        case bytes(f::symbols): append(batch.symbols, max_batch_entries) = read_symbol(in.get_message()); break;
        case bytes(f::notices): append(batch.notices, max_batch_entries) = read_notice(in.get_message()); break;
        case bytes(f::agent): batch.agent = read_agent(in.get_message()); break;
        case bytes(f::end): batch.end = read_end(in.get_message()); break;
        default: in.skip();
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

// Learns the batch's events; they must continue what is known.
void check_and_learn_periods(const Batch& batch, EventPeriods& periods) {
    if (batch.events.empty()) return;
    if (batch.event_base > std::max<std::size_t>(periods.size(), 1)) throw Malformed{"events are missing"};
    if (batch.event_base + batch.events.size() > max_events) throw Malformed{"too many events"};
    learn_periods(batch, periods);
}

Batch read_batch(std::string_view data, EventPeriods& periods) {
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
    batch.stacks = make_stacks(pending.stacks, batch.stack_base, batch.location_base);
    check_bases(batch);
    check_and_learn_periods(batch, periods);
    batch.bucket_ns = pending.rows.bucket_ns;
    batch.rows = make_rows(pending.rows, periods);
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

Result<Batch> decode(Bytes data, EventPeriods& periods) {
    try {
        EventPeriods learned = periods;
        Batch batch = read_batch(as_text(data), learned);
        periods = std::move(learned);
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
