#include "profile/formats/perf_data/record_reader.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "base/byte_reader.h"
#include "perf/abi.h"
#include "perf/decode.h"
#include "profile/formats/perf_data/layout.h"
#include "profile/formats/perf_data/tracing_data.h"

namespace flamewire::profile::perf_data {
namespace {

// A piece of this size stays in the CPU cache while its records are processed.
constexpr std::size_t piece_bytes = std::size_t{1} << 20;
// Records of at most this size wait for the end of a round. perf's rounds are as large as all its rings: some MiB.
constexpr std::size_t most_waiting_bytes = std::size_t{64} << 20;

Record record_at(Bytes bytes, std::endian order, std::uint64_t& size) {
    const perf::RecordHeader header = perf::record_header(bytes, order).value_or(perf::RecordHeader{});
    Record record;
    record.type = header.type;
    record.misc = header.misc;
    size = header.size;
    if (record.type >= tool_record::first_of_simpleperf) size |= std::uint64_t{record.misc} << 16;
    return record;
}

// Accepts types that future versions of the kernel, perf and simpleperf may use. Damaged types mostly fall outside.
bool may_be_type(std::uint32_t type) {
    constexpr std::uint32_t far = 128;
    return (type != 0 && type < far) || type - tool_record::first_of_simpleperf < far;
}

// Rejects times that no clock can have. ~0 stands for "none"; other such values are damage.
std::uint64_t possible_time(std::uint64_t time_ns) { return time_ns < std::uint64_t{1} << 61 ? time_ns : 0; }

}  // namespace

void RecordReader::FreeStream::operator()(ZSTD_DCtx_s* stream) const { ZSTD_freeDCtx(stream); }

RecordReader::RecordReader(ImportSource& source, Header& header)
    : source_(source), header_(header), ids_(header.events) {}
RecordReader::~RecordReader() = default;

Result<bool> RecordReader::find_header_records() {
    if (!header_.stream) return true;
    header_records_only_ = true;
    TRY(read_all());
    header_records_only_ = false;
    damage_.clear();
    skip_ = 0;
    if (header_.events.empty()) return fail(ErrorCode::invalid, "the perf.data stream ends before its list of events");
    ids_ = EventIds(header_.events);
    return name_tracepoints();
}

// Streams from older perf versions name their tracepoints only in the tracing data.
Result<bool> RecordReader::name_tracepoints() {
    const auto unnamed = [](const RecordedEvent& one) { return one.type == perf::tracepoint_type && one.name.empty(); };
    std::set<std::uint64_t> ids;
    for (const RecordedEvent& event : header_.events)
        if (unnamed(event)) ids.insert(event.config);
    if (tracing_data_offset_ == 0 || ids.empty()) return true;
    std::string bytes(static_cast<std::size_t>(std::min<std::uint64_t>(tracing_data_bytes_, max_tracing_data_bytes)),
                      '\0');
    bytes.resize(TRY(source_.read_at(tracing_data_offset_, bytes)));
    const auto names = tracepoint_names(as_bytes_view(bytes), ids);
    for (RecordedEvent& event : header_.events)
        if (const auto name = names.find(event.config); name != names.end() && unnamed(event))
            event.name = name->second;
    return true;
}

Result<bool> RecordReader::read(const Visit& visit, const std::function<void(std::uint64_t)>& progress) {
    constexpr std::size_t most_events = std::numeric_limits<std::uint16_t>::max();
    if (header_.events.size() > most_events)
        return fail(ErrorCode::too_large, "the perf.data file has too many events");
    visit_ = &visit;
    progress_ = &progress;
    const RecordedEvent& first = header_.events.front();
    ordered_ =
        std::ranges::all_of(header_.events, [](const RecordedEvent& one) { return one.samples(perf::sample::time); });
    first_id_ = first.samples(perf::sample::identifier);
    has_id_ = first_id_ || first.samples(perf::sample::id);
    sample_id_offset_ = 0;
    if (!first_id_)
        for (const std::uint64_t before :
             {perf::sample::ip, perf::sample::tid, perf::sample::time, perf::sample::address})
            if (first.samples(before)) sample_id_offset_ += 8;
    TRY(read_all());
    return deliver(order_.ready_all());
}

Result<bool> RecordReader::read_all() {
    const std::uint64_t end = header_.data_offset + header_.data_size;
    std::uint64_t offset = header_.data_offset;
    std::string rest;  // start of an incomplete record
    while (offset < end) {
        const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(piece_bytes, end - offset));
        Block* const block = blocks_.take(std::max(rest.size() + wanted, piece_bytes + piece_bytes / 8));
        std::copy_n(reinterpret_cast<const std::byte*>(rest.data()), rest.size(), block->bytes.get());
        const std::span<char> room(reinterpret_cast<char*>(block->bytes.get()) + rest.size(), wanted);
        const Result<std::size_t> got = source_.read_at(offset, room);
        if (!got) return std::unexpected(got.error());
        Bytes bytes(block->bytes.get(), rest.size() + *got);
        offset += *got;
        rest.clear();
        Result<bool> outcome = true;
        while (outcome && damage_.empty() && bytes.size() >= perf::header_size) {
            const Result<std::size_t> taken = take_records(bytes, *block, offset - bytes.size(), false);
            if (!taken) {
                outcome = std::unexpected(taken.error());
                break;
            }
            bytes = bytes.subspan(*taken);
            if (skip_ == 0) break;
            if (tracing_data_bytes_ != 0 && tracing_data_offset_ == 0) tracing_data_offset_ = offset - bytes.size();
            const std::uint64_t here = std::min<std::uint64_t>(skip_, bytes.size());
            bytes = bytes.subspan(static_cast<std::size_t>(here));
            if (skip_ - here > end - offset) damaged("the file ends within trace data");
            offset += std::min(skip_ - here, end - offset);
            skip_ = 0;
        }
        rest = as_text(bytes);
        blocks_.release(*block);
        if (!outcome) return outcome;
        if (!damage_.empty()) return true;
        if (*got < wanted) break;
        if (progress_ != nullptr && !header_records_only_) (*progress_)(offset);
        TRY(deliver_if_many());
    }
    if (!rest.empty() || (header_.cut && damage_.empty()))
        damaged(rest.empty() ? "the file ends before its last record" : "the file ends in the middle of a record");
    else if (!left_over_.empty())
        damaged("the last compressed record ends in the middle of another one");
    return true;
}

void RecordReader::damaged(std::string what) {
    if (damage_.empty()) damage_ = std::move(what);
}

Result<std::size_t> RecordReader::take_records(Bytes bytes, Block& block, std::uint64_t offset, bool unpacked) {
    std::size_t taken = 0;
    while (bytes.size() - taken >= perf::header_size && skip_ == 0 && damage_.empty()) {
        const Bytes rest = bytes.subspan(taken);
        std::uint64_t size = 0;
        Record record = record_at(rest, header_.order(), size);
        if (size < perf::header_size || !may_be_type(record.type)) {
            damaged(unpacked ? std::string("a compressed record is damaged")
                             : fmt::format("there is no valid record at byte {}", offset + taken));
            break;
        }
        if (size > rest.size()) break;
        record.body = rest.subspan(perf::header_size, static_cast<std::size_t>(size) - perf::header_size);
        taken += static_cast<std::size_t>(size);
        TRY(take(record, block, unpacked));
    }
    return taken;
}

Result<bool> RecordReader::take(Record record, Block& block, bool unpacked) {
    ByteReader fields(record.body, header_.order());
    switch (record.type) {
        case tool_record::auxtrace: {
            const std::uint64_t size = fields.u64();
            if (!unpacked) skip_ = size;
            trace_bytes_ += size;
            return true;
        }
        case tool_record::tracing_data:
            if (unpacked) return true;
            skip_ = (std::uint64_t{fields.u32()} + 7) & ~std::uint64_t{7};
            if (tracing_data_bytes_ == 0) tracing_data_bytes_ = skip_;
            return true;
        case tool_record::compressed:
            return unpacked || header_records_only_ ? Result<bool>(true) : unpack(record.body);
        case tool_record::compressed2: {
            if (unpacked || header_records_only_) return true;
            const Bytes packed = fields.bytes(fields.u64());
            if (!fields.ok()) damaged("a compressed record is damaged");
            return fields.ok() ? unpack(packed) : Result<bool>(true);
        }
        case tool_record::attribute:
        case tool_record::event_type:
        case tool_record::build_id:
        case tool_record::event_update:
        case tool_record::feature:
            if (header_records_only_ && !take_header_record(record)) ++header_.damaged_features;
            return true;
        default: break;
    }
    if (header_records_only_) return true;
    if (record.type == tool_record::finished_round) return deliver(order_.ready_at_round());
    if (!date(record)) {
        ++unknown_events_;
        return true;
    }
    if (!ordered_ || record.time_ns == 0) return (*visit_)(record);
    Blocks::hold(block);
    order_.put({record, &block});
    return true;
}

bool RecordReader::take_header_record(const Record& record) {
    ByteReader fields(record.body, header_.order());
    switch (record.type) {
        case tool_record::attribute: return read_attribute_record(header_, record.body);
        case tool_record::event_type: read_event_type(header_, record.body); return true;
        case tool_record::build_id: return read_build_id(header_, record.misc, record.body);
        case tool_record::event_update: read_event_update(header_, record.body); return true;
        default: {
            const std::uint64_t feature = fields.u64();
            if (!fields.ok() || feature >= feature::count) return false;
            header_.features.push_back(static_cast<unsigned>(feature));
            return read_feature(header_, static_cast<unsigned>(feature), record.body.subspan(8));
        }
    }
}

// The payloads of all compressed records form one zstd stream. A record can start in one payload and end in the next.
Result<bool> RecordReader::unpack(Bytes packed) {
    if (unpack_failed_) return true;
    if (!stream_) stream_.reset(ZSTD_createDCtx());
    if (!stream_) return fail(ErrorCode::too_large, "there is no memory to decompress records with");
    ZSTD_inBuffer in{packed.data(), packed.size(), 0};
    while (true) {
        Block* const block = blocks_.take(std::max(left_over_.size() + piece_bytes / 2, piece_bytes));
        std::copy_n(reinterpret_cast<const std::byte*>(left_over_.data()), left_over_.size(), block->bytes.get());
        ZSTD_outBuffer out{block->bytes.get(), block->capacity, left_over_.size()};
        const std::size_t outcome = ZSTD_decompressStream(stream_.get(), &out, &in);
        const Bytes bytes(block->bytes.get(), out.pos);
        const bool full = out.pos == block->capacity;
        left_over_.clear();
        const Result<std::size_t> taken = take_records(bytes, *block, 0, true);
        if (taken) left_over_ = as_text(bytes.subspan(*taken));
        blocks_.release(*block);
        if (!taken) return std::unexpected(taken.error());
        if (ZSTD_isError(outcome) != 0) {
            unpack_failed_ = true;
            left_over_.clear();
            damaged(fmt::format("its compressed records are damaged ({})", ZSTD_getErrorName(outcome)));
            return true;
        }
        if (!damage_.empty() || (in.pos == in.size && !full)) return true;
        TRY(deliver_if_many());
    }
}

bool RecordReader::date(Record& record) {
    if (record.type >= tool_record::attribute) return true;
    if (record.type != perf::record::sample) {
        record.time_ns = trailing_time(record);
        return true;
    }
    if (header_.events.size() > 1 && has_id_) {
        ByteReader fields(record.body, header_.order());
        fields.skip(sample_id_offset_);
        const auto event = ids_.find(fields.u64());
        if (!event) return false;
        record.event = *event;
    }
    const RecordedEvent& event = header_.events[record.event];
    if (!event.samples(perf::sample::time)) return true;
    ByteReader fields(record.body, header_.order());
    for (const std::uint64_t before : {perf::sample::identifier, perf::sample::ip, perf::sample::tid})
        if (event.samples(before)) fields.skip(8);
    record.time_ns = possible_time(fields.u64());
    return true;
}

// Some writers set sample_id_all but omit the trailer.
std::uint64_t RecordReader::trailing_time(const Record& record) {
    const std::size_t own = perf::own_size(record.type, record.body, header_.order());
    const auto trailed_by = [&](const RecordedEvent& event) -> std::optional<perf::Trailed> {
        const perf::RecordFormat format = event.format();
        if (record.body.size() < own + perf::trailer_size(format)) return std::nullopt;
        return perf::split_trailer(record.type, record.body, format, header_.order());
    };
    const RecordedEvent* event = &header_.events.front();
    auto trailed = trailed_by(*event);
    // The identifier is the last field, whichever others the event has.
    const auto index = trailed && first_id_ ? ids_.find(trailed->origin.id) : std::nullopt;
    if (index && *index != 0) {
        event = &header_.events[*index];
        trailed = trailed_by(*event);
    }
    return trailed && event->sample_id_all ? possible_time(trailed->origin.time_ns) : 0;
}

Result<bool> RecordReader::deliver(std::size_t count) {
    Result<bool> outcome = true;
    for (std::size_t i = 0; i < count; ++i) {
        if (outcome) outcome = (*visit_)(order_[i]);
        blocks_.release(*order_[i].block);
    }
    order_.drop(count);
    return outcome;
}

Result<bool> RecordReader::deliver_if_many() {
    const bool many = blocks_.held_bytes() + order_.size() * sizeof(HeldRecord) > most_waiting_bytes;
    return many ? deliver(order_.ready_half()) : Result<bool>(true);
}

}  // namespace flamewire::profile::perf_data
