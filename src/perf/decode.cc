#include "perf/decode.h"

#include <algorithm>
#include <cstring>

#include "perf/abi.h"

namespace flamewire::perf {
namespace {

constexpr std::size_t word = sizeof(std::uint64_t);

CpuMode cpu_mode(std::uint16_t misc) {
    const unsigned mode = misc & misc::cpu_mode;
    return mode <= static_cast<unsigned>(CpuMode::guest_user) ? static_cast<CpuMode>(mode) : CpuMode::unknown;
}

// The size of `fixed` bytes followed by a text, padded with NULs to whole words.
std::size_t with_text(Bytes body, std::size_t fixed) {
    if (body.size() <= fixed) return body.size();
    const std::size_t length = as_text(body.subspan(fixed)).find('\0');
    if (length == std::string_view::npos) return body.size();
    return fixed + (length / word + 1) * word;
}

// The number of words of PERF_SAMPLE_READ that each counter has.
std::uint64_t words_of_counter(std::uint64_t format) {
    return 1 + ((format & read_format::id) != 0 ? 1U : 0U) + ((format & read_format::lost) != 0 ? 1U : 0U);
}

// The number of words with the times, of a counter or of a group.
std::uint64_t words_of_times(std::uint64_t format) {
    return ((format & read_format::time_enabled) != 0 ? 1U : 0U) +
           ((format & read_format::time_running) != 0 ? 1U : 0U);
}

MmapRecord decode_mmap(ByteReader& in, const RecordHeader& header) {
    MmapRecord map;
    map.cpu_mode = cpu_mode(header.misc);
    map.pid = in.u32();
    map.tid = in.u32();
    map.start = in.u64();
    map.length = in.u64();
    map.page_offset = in.u64();
    if (header.type == record::mmap) {
        constexpr std::uint32_t readable = 1, executable = 4;
        map.protection = (header.misc & misc::mmap_data) != 0 ? readable : readable | executable;
    } else {
        if ((header.misc & misc::mmap_build_id) != 0) {
            const std::size_t size = in.u8();
            in.skip(3);
            const Bytes build_id = in.bytes(20);
            map.build_id = build_id.first(std::min(size, build_id.size()));
        } else {
            map.device_major = in.u32();
            map.device_minor = in.u32();
            map.inode = in.u64();
            map.inode_generation = in.u64();
        }
        map.protection = in.u32();
        map.flags = in.u32();
    }
    map.path = in.text();
    return map;
}

// Space for `size` bytes, of which the first dyn_size were copied; no dyn_size if there is no space. The kernel
// reserves less than requested if the record would exceed 64 KiB, or if the address space ends.
void read_stack(ByteReader& in, bool present, Sample& out) {
    out.stack = {};
    out.stack_cut = false;
    out.stack_missing = 0;
    const std::uint64_t size = present ? in.u64() : 0;
    if (size == 0) return;
    const Bytes room = in.bytes(size);
    const std::uint64_t copied = in.u64();
    if (!in.ok() || copied > size) return in.fail();
    out.stack = room.first(static_cast<std::size_t>(copied));
    out.stack_cut = copied == size;
    out.stack_missing = size - copied;
}

// The fields in front of the period, which almost all have a fixed size.
void read_fields(ByteReader& in, const RecordFormat& format, Sample& out) {
    const std::uint64_t identifier = format.has(sample::identifier) ? in.u64() : 0;
    out.ip = format.has(sample::ip) ? in.u64() : 0;
    out.pid = format.has(sample::tid) ? in.u32() : 0;
    out.tid = format.has(sample::tid) ? in.u32() : 0;
    out.time_ns = format.has(sample::time) ? in.u64() : 0;
    out.address = format.has(sample::address) ? in.u64() : 0;
    out.id = format.has(sample::id) ? in.u64() : identifier;
    if (format.has(sample::stream_id)) in.skip(word);
    out.cpu = format.has(sample::cpu) ? in.u32() : 0;
    if (format.has(sample::cpu)) in.skip(4);
}

// The same as the agent asks for them: reading them at once takes a quarter less time for a whole sample.
struct AgentsFields {
    std::uint64_t id, ip;
    std::uint32_t pid, tid;
    std::uint64_t time_ns;
    std::uint32_t cpu, reserved;
};

bool has_agents_fields(const RecordFormat& format) {
    constexpr std::uint64_t asked = sample::identifier | sample::ip | sample::tid | sample::time | sample::cpu;
    constexpr std::uint64_t all = asked | sample::address | sample::id | sample::stream_id;
    return (format.fields & all) == asked;
}

void read_agents_fields(ByteReader& in, Sample& out) {
    AgentsFields fields;
    std::memcpy(&fields, in.bytes(sizeof fields).data(), sizeof fields);
    out.id = fields.id;
    out.ip = fields.ip;
    out.pid = fields.pid;
    out.tid = fields.tid;
    out.time_ns = fields.time_ns;
    out.address = 0;
    out.cpu = fields.cpu;
}

CommRecord decode_comm(ByteReader& in, std::uint16_t misc) {
    CommRecord comm;
    comm.exec = (misc & misc::comm_exec) != 0;
    comm.pid = in.u32();
    comm.tid = in.u32();
    comm.comm = in.text();
    return comm;
}

TaskRecord decode_task(ByteReader& in, const RecordHeader& header) {
    TaskRecord task;
    task.exit = header.type == record::exit;
    task.with_maps = (header.misc & misc::fork_exec) == 0;
    task.pid = in.u32();
    task.parent_pid = in.u32();
    task.tid = in.u32();
    task.parent_tid = in.u32();  // the time again follows
    return task;
}

LostRecord decode_lost(ByteReader& in, std::uint32_t type, std::uint32_t cpu) {
    LostRecord lost;
    if (type == record::lost) lost.id = in.u64();
    lost.count = in.u64();
    lost.cpu = cpu;
    return lost;
}

ThrottleRecord decode_throttle(ByteReader& in, std::uint32_t type) {
    ThrottleRecord throttle;
    throttle.unthrottle = type == record::unthrottle;
    in.skip(word);  // the time again
    throttle.id = in.u64();
    return throttle;
}

SwitchRecord decode_switch(ByteReader& in, const RecordHeader& header, std::uint32_t tid) {
    if (header.type == record::context_switch_cpu_wide) in.skip(word);  // the previous or next thread
    SwitchRecord change;
    change.tid = tid;
    change.out = (header.misc & misc::switch_out) != 0;
    change.preempted = change.out && (header.misc & misc::switch_preempted) != 0;
    return change;
}

KsymbolRecord decode_ksymbol(ByteReader& in) {
    constexpr std::uint16_t bpf = 1, unregister = 1;
    KsymbolRecord symbol;
    symbol.address = in.u64();
    symbol.size = in.u32();
    symbol.of_bpf = in.u16() == bpf;
    symbol.gone = (in.u16() & unregister) != 0;
    symbol.name = in.text();
    return symbol;
}

}  // namespace

std::optional<RecordHeader> record_header(Bytes record, std::endian order) {
    RecordHeader header;
    static_assert(sizeof header == header_size);  // as struct perf_event_header
    if (record.size() < header_size) return std::nullopt;
    std::memcpy(&header, record.data(), header_size);
    if (order == std::endian::native) return header;
    return RecordHeader{std::byteswap(header.type), std::byteswap(header.misc), std::byteswap(header.size)};
}

std::size_t trailer_size(const RecordFormat& format) {
    constexpr std::uint64_t trailing =
        sample::tid | sample::time | sample::id | sample::stream_id | sample::cpu | sample::identifier;
    return static_cast<std::size_t>(std::popcount(format.fields & trailing)) * word;
}

std::optional<Trailed> split_trailer(std::uint32_t type, Bytes body, const RecordFormat& format, std::endian order) {
    const std::size_t size = trailer_size(format);
    if (body.size() < size) return std::nullopt;
    // perf_event_ksymbol_output() of Linux adds the size of a trailer to the record for each event that receives it. If
    // another profiler runs too, bytes that the kernel has not written follow the trailer.
    if (type == record::ksymbol) body = body.first(std::min(body.size(), own_size(type, body, order) + size));
    Trailed result;
    result.body = body.first(body.size() - size);
    ByteReader in(body.last(size), order);
    if (format.has(sample::tid)) {
        in.skip(4);  // pid
        result.origin.tid = in.u32();
    }
    if (format.has(sample::time)) result.origin.time_ns = in.u64();
    if (format.has(sample::id)) result.origin.id = in.u64();
    if (format.has(sample::stream_id)) in.skip(word);
    if (format.has(sample::cpu)) {
        result.origin.cpu = in.u32();
        in.skip(4);
    }
    if (format.has(sample::identifier)) result.origin.id = in.u64();
    return result;
}

std::size_t own_size(std::uint32_t type, Bytes body, std::endian order) {
    switch (type) {
        case record::mmap: return with_text(body, 32);
        case record::mmap2: return with_text(body, 64);
        case record::comm:
        case record::cgroup: return with_text(body, 8);
        case record::ksymbol: return with_text(body, 16);
        case record::fork:
        case record::exit:
        case record::throttle:
        case record::unthrottle:
        case record::aux: return 24;
        case record::lost:
        case record::bpf_event: return 16;
        case record::namespaces: {
            ByteReader in(body, order);
            in.skip(word);
            const std::uint64_t count = in.u64();
            return count > body.size() / 16 ? body.size() : 16 + static_cast<std::size_t>(count) * 16;
        }
        case record::lost_samples:
        case record::itrace_start:
        case record::context_switch_cpu_wide: return 8;
        default: return 0;
    }
}

void counter_values(const Sample& sample, const RecordFormat& format, std::vector<CounterValue>& values) {
    values.clear();
    std::span<const std::uint64_t> words = sample.counters;
    if (words.empty()) return;
    const bool group = (format.read_format & read_format::group) != 0;
    const auto times = static_cast<std::size_t>(words_of_times(format.read_format));
    const auto each = static_cast<std::size_t>(words_of_counter(format.read_format));
    const bool has_id = (format.read_format & read_format::id) != 0;
    if (!group) {
        values.push_back({words[0], has_id ? words[1 + times] : 0});
        return;
    }
    for (words = words.subspan(1 + times); !words.empty(); words = words.subspan(each))
        values.push_back({words[0], has_id ? words[1] : 0});
}

// `count` elements of T, which consists of whole words: in place where that is possible.
template <class T>
std::span<const T> Decoder::array(ByteReader& in, std::uint64_t count) {
    static_assert(sizeof(T) % word == 0 && alignof(T) <= alignof(std::uint64_t));
    if (count > in.remaining() / sizeof(T)) {
        in.fail();
        return {};
    }
    if (count == 0) return {};
    const std::size_t left = in.remaining() / word;
    const Bytes bytes = in.bytes(count * sizeof(T));
    const bool aligned = reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(std::uint64_t) == 0;
    const void* at = bytes.data();
    if (!aligned || order_ != std::endian::native) {
        // All arrays of a record fit, so that the views into it stay valid.
        if (copy_.empty()) copy_.reserve(left);
        const std::size_t first = copy_.size();
        copy_.resize(first + bytes.size() / word);
        std::memcpy(&copy_[first], bytes.data(), bytes.size());
        if (order_ != std::endian::native)
            for (std::size_t i = first; i < copy_.size(); ++i) copy_[i] = std::byteswap(copy_[i]);
        at = &copy_[first];
    }
    return {static_cast<const T*>(at), static_cast<std::size_t>(count)};
}

// struct perf_branch_entry is 24 bytes: from, to, and a word of flags.
static_assert(sizeof(BranchEntry) == 24);

// Assigns every field: `out` is often that of the sample before.
bool Decoder::sample(std::uint16_t misc, Bytes body, const RecordFormat& format, Sample& out) {
    ByteReader in(body, order_);
    copy_.clear();
    out.cpu_mode = cpu_mode(misc);
    if (order_ == std::endian::native && has_agents_fields(format) && body.size() >= sizeof(AgentsFields))
        read_agents_fields(in, out);
    else
        read_fields(in, format, out);
    out.period = format.has(sample::period) ? in.u64() : format.period;
    out.counters = {};
    if (format.has(sample::read)) {
        const bool group = (format.read_format & read_format::group) != 0;
        ByteReader ahead = in;
        const std::uint64_t count = group ? std::min<std::uint64_t>(ahead.u64(), in.remaining()) : 1;
        out.counters = array<std::uint64_t>(
            in, (group ? 1U : 0U) + words_of_times(format.read_format) + count * words_of_counter(format.read_format));
    }
    out.callchain = {};
    if (format.has(sample::callchain)) out.callchain = array<std::uint64_t>(in, in.u64());
    out.raw = format.has(sample::raw) ? in.bytes(in.u32()) : Bytes();
    out.branches = {};
    if (format.has(sample::branch_stack)) {
        const std::uint64_t count = in.u64();
        if ((format.branch_fields & branch::hardware_index) != 0) in.skip(word);
        out.branches = array<BranchEntry>(in, count);
        if ((format.branch_fields & branch::counters) != 0) in.skip(out.branches.size() * word);
    }
    out.register_abi = format.has(sample::regs_user) ? in.u64() : 0;
    out.register_mask = out.register_abi != 0 ? format.register_mask : 0;
    out.registers = array<std::uint64_t>(in, static_cast<std::uint64_t>(std::popcount(out.register_mask)));
    read_stack(in, format.has(sample::stack_user), out);
    return in.ok();
}

Decoded Decoder::side_record(const RecordHeader& header, Bytes body, const Origin& origin, SideRecord& out) const {
    ByteReader in(body, order_);
    switch (header.type) {
        case record::mmap:
        case record::mmap2: out = decode_mmap(in, header); break;
        case record::comm: out = decode_comm(in, header.misc); break;
        case record::fork:
        case record::exit: out = decode_task(in, header); break;
        case record::lost:
        case record::lost_samples: out = decode_lost(in, header.type, origin.cpu); break;
        case record::throttle:
        case record::unthrottle: out = decode_throttle(in, header.type); break;
        case record::context_switch:
        case record::context_switch_cpu_wide: out = decode_switch(in, header, origin.tid); break;
        case record::ksymbol: out = decode_ksymbol(in); break;
        default: return Decoded::skipped;
    }
    std::visit([&](auto& decoded) { decoded.time_ns = origin.time_ns; }, out);
    return in.ok() ? Decoded::ok : Decoded::malformed;
}

std::optional<DeferredCallchain> Decoder::deferred_callchain(Bytes body) {
    ByteReader in(body, order_);
    copy_.clear();
    DeferredCallchain deferred;
    deferred.cookie = in.u64();
    deferred.callchain = array<std::uint64_t>(in, in.u64());
    if (!in.ok()) return std::nullopt;
    return deferred;
}

}  // namespace flamewire::perf
