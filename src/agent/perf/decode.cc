#include "agent/perf/decode.h"

#include <cstring>

#include "perf/abi.h"

namespace flamewire::agent {
namespace {

using perf::Decoded;

// Offsets that follow from sample_fields: header, id, ip, pid, tid, time.
constexpr std::size_t sample_tid_offset = 28, sample_time_offset = 32;

constexpr perf::RecordFormat sideband_format{.fields = sideband_fields};

// The caller must check that the value fits.
template <class T>
T load(Bytes bytes, std::size_t offset) {
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
}

bool is_sample(Bytes record) {
    return record.size() >= perf::header_size && load<std::uint32_t>(record, 0) == perf::record::sample;
}

// A tracepoint's data begins with common fields: type (2 bytes), flags, preempt_count, pid (kernel/trace/trace.h).
constexpr std::size_t common_flags_offset = 2;
constexpr unsigned in_interrupt = 0x08 | 0x10;  // TRACE_FLAG_HARDIRQ, TRACE_FLAG_SOFTIRQ

bool decode_waking(std::uint16_t woken_at, SampleRecord& sample) {
    const Bytes data = sample.raw;
    const bool whole_words = (sizeof(std::uint32_t) + data.size()) % sizeof(std::uint64_t) == 0;
    if (!whole_words || data.size() < std::size_t{woken_at} + sizeof(std::uint32_t)) return false;
    sample.woken_tid = load<std::uint32_t>(data, woken_at);
    sample.by_interrupt = (load<std::uint8_t>(data, common_flags_offset) & in_interrupt) != 0;
    return true;
}

bool decode_sample(std::uint16_t misc, Bytes body, const SampleLayout& layout, Record& out, perf::Origin& origin) {
    SampleRecord& sample = out.emplace<SampleRecord>();
    perf::Decoder decoder;
    if (!decoder.sample(misc, body, record_format(layout), sample)) return false;
    sample.mode = layout.mode;
    sample.copy_omitted = layout.copy_omitted;
    sample.values = layout.values;
    origin = {sample.id, sample.tid, sample.cpu, sample.time_ns};
    return layout.woken_at == 0 || decode_waking(layout.woken_at, sample);
}

}  // namespace

std::uint64_t record_time(Bytes record) {
    if (is_sample(record))
        return record.size() >= sample_time_offset + 8 ? load<std::uint64_t>(record, sample_time_offset) : 0;
    const auto header = perf::record_header(record);
    if (!header) return 0;
    const auto trailed = perf::split_trailer(header->type, record.subspan(perf::header_size), sideband_format);
    return trailed ? trailed->origin.time_ns : 0;
}

std::uint64_t sample_id(Bytes record) {
    if (record.size() < perf::header_size + 8 || !is_sample(record)) return 0;
    return load<std::uint64_t>(record, perf::header_size);
}

std::uint32_t sample_tid(Bytes record) {
    if (sample_id(record) == 0 || record.size() < sample_tid_offset + 4) return 0;
    return load<std::uint32_t>(record, sample_tid_offset);
}

Decoded decode_record(Bytes record, const SampleLayout& layout, Record& out, perf::Origin& origin) {
    const auto header = perf::record_header(record);
    const bool aligned = reinterpret_cast<std::uintptr_t>(record.data()) % alignof(std::uint64_t) == 0;
    if (!header || header->size != record.size() || !aligned) return Decoded::malformed;
    const Bytes body = record.subspan(perf::header_size);
    if (header->type == perf::record::sample)
        return decode_sample(header->misc, body, layout, out, origin) ? Decoded::ok : Decoded::malformed;

    const auto trailed = perf::split_trailer(header->type, body, sideband_format);
    if (!trailed) return Decoded::malformed;
    origin = trailed->origin;
    perf::SideRecord decoded;
    const Decoded answer = perf::Decoder().side_record(*header, trailed->body, origin, decoded);
    if (answer != Decoded::ok) return answer;
    // The names of other code are not sent.
    if (const auto* symbol = std::get_if<KsymbolRecord>(&decoded); symbol != nullptr && !symbol->of_bpf)
        return Decoded::skipped;
    std::visit([&](const auto& one) { out = one; }, decoded);
    return Decoded::ok;
}

}  // namespace flamewire::agent
