#include "agent/perf/decode.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <bit>

#include "base/byte_reader.h"

namespace flamewire::agent {
namespace {

// Newer than some headers that this is built with.
constexpr std::uint32_t record_lost_samples = 13, record_ksymbol = 17;
constexpr std::uint16_t ksymbol_of_bpf = 1, ksymbol_gone = 1;
constexpr std::uint16_t misc_mmap_build_id = 1U << 14;
constexpr std::uint16_t misc_switch_preempted = 1U << 14;

// Offsets that follow from attr.h's field lists. Sample: header, id, ip, pid, tid, time, cpu, res, period (unless it is
// fixed), nr, ips.
constexpr std::size_t sample_time_offset = 32;
constexpr std::size_t sample_period_offset = 48;
// Trailer: pid, tid, time, cpu, res, id.
constexpr std::size_t trailer_size = 32;

// The caller must check that the value fits.
template <class T>
T load(Bytes bytes, std::size_t offset) {
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
}

struct Trailer {
    RecordOrigin origin;
    std::uint64_t time_ns = 0;
};

// perf_event_ksymbol_output() of Linux adds the size of a trailer to the record for each event that receives it. If
// another profiler runs too, bytes that the kernel has not written follow the trailer.
Bytes written(Bytes record) {
    constexpr std::size_t name_offset = 24;
    if (load<std::uint32_t>(record, 0) != record_ksymbol || record.size() < name_offset) return record;
    const std::size_t name = as_text(record.subspan(name_offset)).find('\0');
    if (name == std::string_view::npos) return record;
    const std::size_t size = name_offset + (name / 8 + 1) * 8 + trailer_size;
    return record.first(std::min(size, record.size()));
}

Trailer read_trailer(Bytes record) {
    const Bytes end = record.last(trailer_size);
    return {{load<std::uint64_t>(end, 24), load<std::uint32_t>(end, 4), load<std::uint32_t>(end, 16)},
            load<std::uint64_t>(end, 8)};
}

// `count` elements of T, which consists of whole words. Records are 8-byte aligned (the caller guarantees it), and so
// is everything in them up to the stack copy, which comes last. So the elements are used in place.
template <class T>
std::span<const T> array(ByteReader& in, std::uint64_t count) {
    static_assert(sizeof(T) % sizeof(std::uint64_t) == 0 && alignof(T) <= alignof(std::uint64_t));
    if (count > in.remaining() / sizeof(T)) {
        in.fail();
        return {};
    }
    const Bytes bytes = in.bytes(count * sizeof(T));
    return {static_cast<const T*>(static_cast<const void*>(bytes.data())), static_cast<std::size_t>(count)};
}

// struct perf_branch_entry is 24 bytes: from, to, and a word of flags.
static_assert(sizeof(BranchEntry) == 24);

// A tracepoint's data begins with common fields: type (2 bytes), flags, preempt_count, pid (kernel/trace/trace.h).
constexpr std::size_t common_flags_offset = 2;
constexpr unsigned in_interrupt = 0x08 | 0x10;  // TRACE_FLAG_HARDIRQ, TRACE_FLAG_SOFTIRQ

// A u32 size, then that many bytes, which end at a word boundary.
bool decode_waking(ByteReader& in, std::uint16_t woken_at, SampleRecord& sample) {
    const std::uint32_t size = in.u32();
    const Bytes data = in.bytes(size);
    const bool whole_words = (sizeof size + data.size()) % sizeof(std::uint64_t) == 0;
    if (!whole_words || data.size() < std::size_t{woken_at} + sizeof(std::uint32_t)) return false;
    sample.woken_tid = load<std::uint32_t>(data, woken_at);
    sample.by_interrupt = (load<std::uint8_t>(data, common_flags_offset) & in_interrupt) != 0;
    return true;
}

// The order of the fields is that of enum perf_event_type: chain, a tracepoint's data, branches, registers, stack.
bool decode_stack(Bytes rest, const SampleLayout& layout, SampleRecord& sample) {
    ByteReader in(rest);
    sample.callchain = array<std::uint64_t>(in, in.u64());
    if (layout.woken_at != 0 && !decode_waking(in, layout.woken_at, sample)) return false;
    if (layout.branches) sample.branches = array<BranchEntry>(in, in.u64());
    if (layout.register_mask != 0) {
        sample.register_abi = in.u64();
        sample.register_mask = sample.register_abi != 0 ? layout.register_mask : 0;
        sample.registers = array<std::uint64_t>(in, static_cast<std::uint64_t>(std::popcount(sample.register_mask)));
    }
    if (layout.stack_bytes != 0) {
        // Space for `size` bytes, of which the first dyn_size were copied; no dyn_size if there is no space. The kernel
        // reserves less than requested if the record would exceed 64 KiB, or if the address space ends.
        const std::uint64_t size = in.u64();
        const Bytes room = in.bytes(size);
        const std::uint64_t copied = size != 0 ? in.u64() : 0;
        if (!in.ok() || copied > size) return false;
        sample.stack = room.first(static_cast<std::size_t>(copied));
        sample.stack_cut = size != 0 && copied == size;
        sample.stack_missing = size - copied;
    }
    return in.ok();
}

bool decode_sample(Bytes record, std::uint16_t misc, const SampleLayout& layout, Record& out, RecordOrigin& origin) {
    const std::size_t chain_offset = sample_period_offset + (layout.fixed_period != 0 ? 0 : sizeof(std::uint64_t));
    if (record.size() < chain_offset + 8) return false;
    SampleRecord& sample = out.emplace<SampleRecord>();
    sample.id = load<std::uint64_t>(record, 8);
    sample.ip = load<std::uint64_t>(record, 16);
    sample.pid = load<std::uint32_t>(record, 24);
    sample.tid = load<std::uint32_t>(record, 28);
    sample.time_ns = load<std::uint64_t>(record, sample_time_offset);
    sample.cpu = load<std::uint32_t>(record, 40);
    sample.period = layout.fixed_period != 0 ? layout.fixed_period : load<std::uint64_t>(record, sample_period_offset);
    sample.user_mode = (misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER;
    sample.mode = layout.mode;
    sample.copy_omitted = layout.copy_omitted;
    origin = {sample.id, sample.tid, sample.cpu};
    return decode_stack(record.subspan(chain_offset), layout, sample);
}

void decode_mmap2(ByteReader& body, std::uint16_t misc, const Trailer& trailer, Record& out) {
    Mmap2Record& map = out.emplace<Mmap2Record>();
    map.pid = body.u32();
    map.tid = body.u32();
    map.time_ns = trailer.time_ns;
    map.start = body.u64();
    map.length = body.u64();
    map.page_offset = body.u64();
    const Bytes identity = body.bytes(24);
    if (!body.ok()) return;
    if ((misc & misc_mmap_build_id) != 0) {
        const auto size = std::min<std::size_t>(std::to_integer<std::size_t>(identity[0]), 20);
        map.build_id = identity.subspan(4, size);
    } else {
        map.device_major = load<std::uint32_t>(identity, 0);
        map.device_minor = load<std::uint32_t>(identity, 4);
        map.inode = load<std::uint64_t>(identity, 8);
        map.inode_generation = load<std::uint64_t>(identity, 16);
    }
    map.protection = body.u32();
    map.flags = body.u32();
    map.path = body.text();  // padded with NULs to 8 bytes
}

void decode_task(ByteReader& body, bool exit, Record& out) {
    TaskRecord& task = out.emplace<TaskRecord>();
    task.exit = exit;
    task.pid = body.u32();
    task.parent_pid = body.u32();
    task.tid = body.u32();
    task.parent_tid = body.u32();
    task.time_ns = body.u64();
}

void decode_comm(ByteReader& body, std::uint16_t misc, const Trailer& trailer, Record& out) {
    CommRecord& comm = out.emplace<CommRecord>();
    comm.pid = body.u32();
    comm.tid = body.u32();
    comm.time_ns = trailer.time_ns;
    comm.exec = (misc & PERF_RECORD_MISC_COMM_EXEC) != 0;
    comm.comm = body.text();
}

void decode_lost(ByteReader& body, bool with_id, const Trailer& trailer, Record& out) {
    LostRecord& lost = out.emplace<LostRecord>();
    if (with_id) lost.id = body.u64();
    lost.count = body.u64();
    lost.time_ns = trailer.time_ns;
    lost.cpu = trailer.origin.cpu;
}

void decode_throttle(ByteReader& body, bool unthrottle, Record& out) {
    ThrottleRecord& throttle = out.emplace<ThrottleRecord>();
    throttle.unthrottle = unthrottle;
    throttle.time_ns = body.u64();
    throttle.id = body.u64();
}

}  // namespace

std::optional<RecordHeader> record_header(Bytes record) {
    if (record.size() < record_header_size) return std::nullopt;
    const RecordHeader header{load<std::uint32_t>(record, 0), load<std::uint16_t>(record, 4),
                              load<std::uint16_t>(record, 6)};
    if (header.size < record_header_size) return std::nullopt;
    return header;
}

std::uint64_t record_time(Bytes record) {
    if (record.size() < record_header_size) return 0;
    if (load<std::uint32_t>(record, 0) == PERF_RECORD_SAMPLE)
        return record.size() >= sample_time_offset + 8 ? load<std::uint64_t>(record, sample_time_offset) : 0;
    return record.size() >= record_header_size + trailer_size ? read_trailer(written(record)).time_ns : 0;
}

std::uint64_t sample_id(Bytes record) {
    if (record.size() < record_header_size + 8 || load<std::uint32_t>(record, 0) != PERF_RECORD_SAMPLE) return 0;
    return load<std::uint64_t>(record, record_header_size);
}

std::uint32_t sample_tid(Bytes record) {
    return sample_id(record) != 0 && record.size() >= 32 ? load<std::uint32_t>(record, 28) : 0;
}

Decoded decode_record(Bytes record, const SampleLayout& layout, Record& out, RecordOrigin& origin) {
    const auto header = record_header(record);
    const bool aligned = reinterpret_cast<std::uintptr_t>(record.data()) % alignof(std::uint64_t) == 0;
    if (!header || header->size != record.size() || !aligned) return Decoded::malformed;
    if (header->type == PERF_RECORD_SAMPLE)
        return decode_sample(record, header->misc, layout, out, origin) ? Decoded::ok : Decoded::malformed;
    if (record.size() < record_header_size + trailer_size) return Decoded::malformed;

    record = written(record);
    const Trailer trailer = read_trailer(record);
    origin = trailer.origin;
    ByteReader body(record.subspan(record_header_size, record.size() - record_header_size - trailer_size));
    switch (header->type) {
        case PERF_RECORD_MMAP2:
            decode_mmap2(body, header->misc, trailer, out);
            break;
        case PERF_RECORD_COMM:
            decode_comm(body, header->misc, trailer, out);
            break;
        case PERF_RECORD_FORK:
            decode_task(body, false, out);
            break;
        case PERF_RECORD_EXIT:
            decode_task(body, true, out);
            break;
        case PERF_RECORD_LOST:
            decode_lost(body, true, trailer, out);
            break;
        case record_lost_samples:
            decode_lost(body, false, trailer, out);
            break;
        case PERF_RECORD_SWITCH_CPU_WIDE:
            body.skip(sizeof(std::uint64_t));  // the previous or next thread
            [[fallthrough]];
        case PERF_RECORD_SWITCH: {
            const bool went = (header->misc & PERF_RECORD_MISC_SWITCH_OUT) != 0;
            out = SwitchRecord{trailer.origin.tid, trailer.time_ns, went,
                               went && (header->misc & misc_switch_preempted) != 0};
            break;
        }
        case record_ksymbol: {
            KsymbolRecord& symbol = out.emplace<KsymbolRecord>();
            symbol.time_ns = trailer.time_ns;
            symbol.address = body.u64();
            symbol.size = body.u32();
            const bool of_bpf = body.u16() == ksymbol_of_bpf;
            symbol.gone = (body.u16() & ksymbol_gone) != 0;
            symbol.name = body.text();
            if (body.ok() && !of_bpf) return Decoded::skipped;
            break;
        }
        case PERF_RECORD_THROTTLE:
            decode_throttle(body, false, out);
            break;
        case PERF_RECORD_UNTHROTTLE:
            decode_throttle(body, true, out);
            break;
        default:
            return Decoded::skipped;
    }
    return body.ok() ? Decoded::ok : Decoded::malformed;
}

}  // namespace flamewire::agent
