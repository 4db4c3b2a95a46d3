#include "perf_data.h"

#include <zstd.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/byte_reader.h"

namespace flamewire::perf_data {

namespace {

// linux/perf_event.h
enum RecordType : std::uint32_t {
    record_mmap = 1,
    record_comm = 3,
    record_exit = 4,
    record_fork = 7,
    record_sample = 9,
    record_mmap2 = 10,
    // perf's own (tools/lib/perf/include/perf/event.h)
    record_compressed = 81,
    record_compressed2 = 83,
};

enum SampleType : std::uint64_t {
    sample_ip = 1 << 0,
    sample_tid = 1 << 1,
    sample_time = 1 << 2,
    sample_addr = 1 << 3,
    sample_read = 1 << 4,
    sample_callchain = 1 << 5,
    sample_id = 1 << 6,
    sample_cpu = 1 << 7,
    sample_period = 1 << 8,
    sample_stream_id = 1 << 9,
    sample_raw = 1 << 10,
    sample_branch_stack = 1 << 11,
    sample_regs_user = 1 << 12,
    sample_stack_user = 1 << 13,
    sample_identifier = 1 << 16,
};

enum ReadFormat : std::uint64_t {
    read_total_time_enabled = 1 << 0,
    read_total_time_running = 1 << 1,
    read_id = 1 << 2,
    read_group = 1 << 3,
    read_lost = 1 << 4,
};

constexpr std::uint64_t branch_hw_index = 1 << 17;
constexpr std::uint16_t misc_cpumode_mask = 7, misc_kernel = 1, misc_user = 2;
constexpr std::uint16_t misc_comm_exec = 1 << 13, misc_mmap_data = 1 << 13, misc_mmap_build_id = 1 << 14;
constexpr std::uint32_t protection_exec = 4;
constexpr unsigned feature_arch = 6;
constexpr unsigned feature_count = 256;

struct FileSection {
    std::uint64_t offset = 0, size = 0;
};

FileSection read_section(ByteReader& reader) {
    FileSection section;
    section.offset = reader.u64();
    section.size = reader.u64();
    return section;
}

Result<Bytes> bytes_of(Bytes file, const FileSection& section, const char* what) {
    if (section.offset > file.size() || file.size() - section.offset < section.size)
        return fail(ErrorCode::invalid, std::string("the file ends before its ") + what + " do");
    return file.subspan(section.offset, section.size);
}

struct RecordHeader {
    std::uint32_t type = 0;
    std::uint16_t misc = 0, size = 0;
};

class Reader {
public:
    explicit Reader(Bytes file) : file_(file) {}

    Result<Recording> read();

private:
    Result<bool> read_attributes(Bytes bytes, std::uint64_t entry_size);
    Result<bool> read_features(ByteReader bitmap, std::uint64_t offset);
    Result<bool> read_records(Bytes data, bool nested);
    Result<bool> read_compressed(Bytes packed);
    bool read_record(const RecordHeader& header, Bytes body);

    std::optional<Record> sample(const RecordHeader& header, Bytes body) const;
    std::optional<Record> mapping(const RecordHeader& header, Bytes body) const;
    std::optional<Record> comm(const RecordHeader& header, Bytes body) const;
    std::optional<Record> task(const RecordHeader& header, Bytes body) const;
    std::optional<std::size_t> attribute_of_sample(Bytes body) const;
    std::uint64_t trailing_time(Bytes body) const;

    Bytes file_;
    Recording recording_;
    std::unique_ptr<ZSTD_DStream, decltype(&ZSTD_freeDStream)> stream_{nullptr, ZSTD_freeDStream};
    std::string left_over_;  // a record whose end is in the next compressed record
};

Result<Recording> Reader::read() {
    ByteReader header(file_);
    const auto magic = header.u64();
    if (!header.ok()) return fail(ErrorCode::invalid, "no perf.data file: too short");
    if (magic == 0x50455246494c4532) return fail(ErrorCode::unsupported, "a perf.data file of the other byte order");
    if (magic != 0x32454c4946524550)
        return fail(ErrorCode::invalid, "not a perf.data file: it does not begin with PERFILE2");
    const auto size = header.u64();
    if (size == 16) return fail(ErrorCode::unsupported, "a perf.data stream for a pipe");
    const auto attribute_size = header.u64();
    const FileSection attributes = read_section(header);
    FileSection data = read_section(header);
    (void)read_section(header);  // event types of old versions
    const Bytes features = header.bytes(feature_count / 8);
    if (!header.ok()) return fail(ErrorCode::invalid, "a perf.data file whose header is cut off");

    const Bytes attribute_bytes = TRY(bytes_of(file_, attributes, "attributes"));
    TRY(read_attributes(attribute_bytes, attribute_size));
    // perf writes the size when it exits. After a crash it is 0, and then there are no features either.
    if (data.size == 0 && data.offset < file_.size())
        data.size = file_.size() - data.offset;
    else
        TRY(read_features(ByteReader(features), data.offset + data.size));
    const Bytes records = TRY(bytes_of(file_, data, "records"));
    TRY(read_records(records, false));

    const auto time = [](const Record& record) {
        return std::visit([](const auto& any) { return any.time_ns; }, record);
    };
    std::ranges::stable_sort(recording_.records, {}, time);
    return std::move(recording_);
}

Result<bool> Reader::read_attributes(Bytes bytes, std::uint64_t entry_size) {
    constexpr std::size_t ids_size = 16;
    if (entry_size < 64 + ids_size || bytes.size() % entry_size != 0)
        return fail(ErrorCode::invalid, "attributes of an impossible size");
    for (; !bytes.empty(); bytes = bytes.subspan(entry_size)) {
        // Fields that an older perf did not write are zero.
        ByteReader fixed(bytes.first(entry_size - ids_size));
        Attribute attribute;
        fixed.skip(24);  // type, size, config, period
        attribute.sample_type = fixed.u64();
        attribute.read_format = fixed.u64();
        const auto flags = fixed.u64();
        attribute.sample_id_all = (flags >> 18 & 1) != 0;
        attribute.exclude_callchain_user = (flags >> 22 & 1) != 0;
        fixed.skip(24);  // wakeup, breakpoint type, config1, config2
        attribute.branch_sample_type = fixed.u64();
        attribute.sample_regs_user = fixed.u64();
        attribute.sample_stack_user = fixed.u32();

        ByteReader tail(bytes.subspan(entry_size - ids_size, ids_size));
        ByteReader ids(TRY(bytes_of(file_, read_section(tail), "event ids")));
        while (ids.remaining() >= sizeof(std::uint64_t)) attribute.ids.push_back(ids.u64());
        recording_.attributes.push_back(std::move(attribute));
    }
    if (recording_.attributes.empty()) return fail(ErrorCode::invalid, "a perf.data file without events");
    return true;
}

Result<bool> Reader::read_features(ByteReader bitmap, std::uint64_t offset) {
    for (unsigned word = 0, entry = 0; word < feature_count / 64; ++word) {
        const auto bits = bitmap.u64();
        for (unsigned bit = 0; bit < 64; ++bit) {
            if ((bits >> bit & 1) == 0) continue;
            if (word * 64 + bit == feature_arch) {
                ByteReader table(TRY(bytes_of(file_, {offset + entry * std::uint64_t{16}, 16}, "features")));
                ByteReader text(TRY(bytes_of(file_, read_section(table), "features")));
                const auto size = text.u32();
                if (size <= text.remaining()) recording_.machine = text.c_string();
            }
            ++entry;
        }
    }
    return true;
}

Result<bool> Reader::read_records(Bytes data, bool nested) {
    while (!data.empty()) {
        RecordHeader header;
        const bool whole = read_at(data, 0, header);
        if (whole && header.size < sizeof header) return fail(ErrorCode::invalid, "a record smaller than its header");
        if (!whole || header.size > data.size()) {
            if (!nested) return fail(ErrorCode::invalid, "the file ends in the middle of a record");
            left_over_ = as_text(data);
            return true;
        }
        const Bytes body = data.subspan(sizeof header, header.size - sizeof header);
        data = data.subspan(header.size);
        if (header.type == record_compressed && !nested) {
            TRY(read_compressed(body));
        } else if (header.type == record_compressed2 && !nested) {
            ByteReader reader(body);
            const auto size = reader.u64();
            if (size > reader.remaining()) return fail(ErrorCode::invalid, "a damaged compressed record");
            TRY(read_compressed(reader.bytes(size)));
        } else if (!read_record(header, body)) {
            return fail(ErrorCode::invalid, "a damaged record of type " + std::to_string(header.type));
        }
    }
    return true;
}

// The payloads of all compressed records are one zstd stream. A record may begin in one and end in the next.
Result<bool> Reader::read_compressed(Bytes packed) {
    constexpr std::size_t limit = std::size_t{1} << 30;
    if (!stream_) stream_.reset(ZSTD_createDStream());
    if (!stream_) return fail(ErrorCode::too_large, "no memory for decompression");
    std::string text = std::exchange(left_over_, {});
    ZSTD_inBuffer in{packed.data(), packed.size(), 0};
    while (true) {
        const std::size_t before = text.size(), room = ZSTD_DStreamOutSize();
        if (before > limit) return fail(ErrorCode::too_large, "a compressed record of more than 1 GiB");
        text.resize(before + room);
        ZSTD_outBuffer out{text.data() + before, room, 0};
        const std::size_t outcome = ZSTD_decompressStream(stream_.get(), &out, &in);
        text.resize(before + out.pos);
        if (ZSTD_isError(outcome) != 0)
            return fail(ErrorCode::invalid, std::string("damaged compressed records: ") + ZSTD_getErrorName(outcome));
        if (in.pos == in.size && out.pos < room) break;
    }
    recording_.unpacked.push_back(std::move(text));
    return read_records(as_bytes_view(recording_.unpacked.back()), true);
}

bool Reader::read_record(const RecordHeader& header, Bytes body) {
    std::optional<Record> record;
    switch (header.type) {
        case record_sample: record = sample(header, body); break;
        case record_mmap:
        case record_mmap2: record = mapping(header, body); break;
        case record_comm: record = comm(header, body); break;
        case record_fork:
        case record_exit: record = task(header, body); break;
        default: ++recording_.skipped; return true;
    }
    if (!record) return false;
    recording_.records.push_back(std::move(*record));
    return true;
}

// The event of a sample. With more than one event, perf puts the id first, or all have the same layout.
std::optional<std::size_t> Reader::attribute_of_sample(Bytes body) const {
    const std::vector<Attribute>& attributes = recording_.attributes;
    if (attributes.size() == 1) return 0;
    std::uint64_t offset = 0;
    const std::uint64_t type = attributes.front().sample_type;
    if ((type & sample_identifier) == 0) {
        for (const std::uint64_t before : {std::uint64_t{sample_ip}, std::uint64_t{sample_tid},
                                           std::uint64_t{sample_time}, std::uint64_t{sample_addr}})
            if ((type & before) != 0) offset += 8;
        const auto same = [&](const Attribute& attribute) { return attribute.sample_type == type; };
        if (!std::ranges::all_of(attributes, same)) return std::nullopt;
        if ((type & sample_id) == 0) return 0;
    }
    std::uint64_t id = 0;
    if (!read_at(body, offset, id)) return std::nullopt;
    for (std::size_t i = 0; i < attributes.size(); ++i)
        if (std::ranges::find(attributes[i].ids, id) != attributes[i].ids.end()) return i;
    return std::nullopt;
}

void skip_read_values(ByteReader& reader, std::uint64_t format) {
    const auto flag = [&](std::uint64_t bit) -> std::size_t { return (format & bit) != 0 ? 8 : 0; };
    const std::size_t times = flag(read_total_time_enabled) + flag(read_total_time_running);
    const std::size_t each = 8 + flag(read_id) + flag(read_lost);
    if ((format & read_group) == 0) {
        reader.skip(times + each);
        return;
    }
    const auto count = reader.u64();
    reader.skip(times);
    reader.skip(count > reader.remaining() / each ? reader.remaining() + 1 : static_cast<std::size_t>(count) * each);
}

std::vector<std::uint64_t> read_words(ByteReader& reader, std::uint64_t count) {
    std::vector<std::uint64_t> words;
    const Bytes bytes =
        reader.bytes(count > reader.remaining() / 8 ? reader.remaining() + 1 : static_cast<std::size_t>(count) * 8);
    words.resize(bytes.size() / 8);
    if (!bytes.empty()) std::memcpy(words.data(), bytes.data(), bytes.size());
    return words;
}

std::vector<Branch> read_branches(ByteReader& reader, bool hw_index) {
    const auto count = reader.u64();
    if (hw_index) reader.skip(8);
    std::vector<Branch> branches;
    const std::vector<std::uint64_t> words =
        read_words(reader, count > reader.remaining() / 24 ? ~count >> 1 : count * 3);
    for (std::size_t i = 0; i + 3 <= words.size(); i += 3) branches.push_back({words[i], words[i + 1]});
    return branches;
}

// In the order of the kernel's perf_output_sample. Everything after the stack is unused.
std::optional<Record> Reader::sample(const RecordHeader& header, Bytes body) const {
    const std::optional<std::size_t> index = attribute_of_sample(body);
    if (!index) return std::nullopt;
    const Attribute& attribute = recording_.attributes[*index];
    const auto has = [&](std::uint64_t bit) { return (attribute.sample_type & bit) != 0; };
    ByteReader reader(body);
    Sample sample;
    sample.attribute = *index;
    sample.user_mode = (header.misc & misc_cpumode_mask) == misc_user;
    if (has(sample_identifier)) reader.skip(8);
    if (has(sample_ip)) sample.ip = reader.u64();
    if (has(sample_tid)) {
        sample.pid = reader.u32();
        sample.tid = reader.u32();
    }
    if (has(sample_time)) sample.time_ns = reader.u64();
    for (const std::uint64_t bit : {std::uint64_t{sample_addr}, std::uint64_t{sample_id},
                                    std::uint64_t{sample_stream_id}, std::uint64_t{sample_cpu}})
        if (has(bit)) reader.skip(8);
    if (has(sample_period)) sample.period = reader.u64();
    if (has(sample_read)) skip_read_values(reader, attribute.read_format);
    if (has(sample_callchain)) sample.callchain = read_words(reader, reader.u64());
    if (has(sample_raw)) reader.skip(reader.u32());
    if (has(sample_branch_stack))
        sample.branches = read_branches(reader, (attribute.branch_sample_type & branch_hw_index) != 0);
    if (has(sample_regs_user)) {
        sample.registers_abi = reader.u64();
        if (sample.registers_abi != 0)
            sample.registers =
                read_words(reader, static_cast<std::uint64_t>(std::popcount(attribute.sample_regs_user)));
    }
    if (has(sample_stack_user)) {
        const auto size = reader.u64();
        const Bytes stack = reader.bytes(size > reader.remaining() ? reader.remaining() + 1 : size);
        // Bytes after dyn_size belong to an earlier record.
        const std::uint64_t copied = size == 0 ? 0 : reader.u64();
        sample.stack = stack.first(std::min<std::uint64_t>(copied, stack.size()));
    }
    if (!reader.ok()) return std::nullopt;
    return sample;
}

// With sample_id_all, other records end with tid, time, id, stream, cpu and identifier, if samples have them.
std::uint64_t Reader::trailing_time(Bytes body) const {
    const Attribute& attribute = recording_.attributes.front();
    if (!attribute.sample_id_all || (attribute.sample_type & sample_time) == 0) return 0;
    std::uint64_t after = 8;
    for (const std::uint64_t bit : {std::uint64_t{sample_id}, std::uint64_t{sample_stream_id},
                                    std::uint64_t{sample_cpu}, std::uint64_t{sample_identifier}})
        if ((attribute.sample_type & bit) != 0) after += 8;
    std::uint64_t time = 0;
    if (after > body.size() || !read_at(body, body.size() - after, time)) return 0;
    return time;
}

std::optional<Record> Reader::mapping(const RecordHeader& header, Bytes body) const {
    ByteReader reader(body);
    Mapping mapping;
    mapping.kernel = (header.misc & misc_cpumode_mask) == misc_kernel;
    mapping.pid = reader.u32();
    mapping.tid = reader.u32();
    mapping.start = reader.u64();
    mapping.length = reader.u64();
    mapping.page_offset = reader.u64();
    if (header.type == record_mmap) {
        mapping.executable = (header.misc & misc_mmap_data) == 0;
    } else {
        const Bytes identity = reader.bytes(24);
        if ((header.misc & misc_mmap_build_id) != 0 && identity.size() == 24)
            mapping.build_id =
                identity.subspan(4, std::min<std::size_t>(std::to_integer<std::size_t>(identity[0]), 20));
        mapping.executable = (reader.u32() & protection_exec) != 0;
        reader.skip(4);  // flags
    }
    mapping.path = reader.c_string();
    mapping.time_ns = trailing_time(body);
    if (!reader.ok()) return std::nullopt;
    return mapping;
}

std::optional<Record> Reader::comm(const RecordHeader& header, Bytes body) const {
    ByteReader reader(body);
    Comm comm;
    comm.exec = (header.misc & misc_comm_exec) != 0;
    comm.pid = reader.u32();
    comm.tid = reader.u32();
    comm.comm = reader.c_string();
    comm.time_ns = trailing_time(body);
    if (!reader.ok()) return std::nullopt;
    return comm;
}

std::optional<Record> Reader::task(const RecordHeader& header, Bytes body) const {
    ByteReader reader(body);
    Task task;
    task.exit = header.type == record_exit;
    task.pid = reader.u32();
    task.parent_pid = reader.u32();
    task.tid = reader.u32();
    task.parent_tid = reader.u32();
    task.time_ns = reader.u64();
    if (!reader.ok()) return std::nullopt;
    return task;
}

}  // namespace

Result<Recording> read_recording(Bytes file) {
    try {
        return Reader(file).read();
    } catch (const std::bad_alloc&) {
        return fail(ErrorCode::too_large, "a perf.data file that does not fit into memory");
    }
}

}  // namespace flamewire::perf_data
