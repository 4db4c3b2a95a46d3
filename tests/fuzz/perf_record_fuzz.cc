// Arbitrary bytes as the content of two rings, at any position: the merge and the decoder must not read out of bounds,
// and must always make progress.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <variant>
#include <vector>

#include "agent/perf/decode.h"
#include "agent/perf/merge.h"
#include "agent/perf/owners.h"
#include "base/byte_reader.h"
#include "perf/decode.h"

using namespace flamewire;
using namespace flamewire::agent;

namespace {

// Reads every byte to which a decoded record refers.
std::uint64_t touch(const perf::Sample& sample) {
    std::uint64_t sum = 0;
    for (const auto words : {sample.callchain, sample.registers, sample.counters})
        for (const std::uint64_t value : words) sum += value;
    for (const Bytes bytes : {sample.raw, sample.stack})
        for (const std::byte byte : bytes) sum += std::to_integer<std::uint64_t>(byte);
    for (const perf::BranchEntry& branch : sample.branches) sum += branch.from + branch.to + branch.flags;
    return sum;
}

template <class T>
std::uint64_t touch_texts(const T& record) {
    std::uint64_t sum = 0;
    const auto add = [&](std::string_view text) {
        for (const char letter : text) sum += static_cast<unsigned char>(letter);
    };
    if constexpr (requires { record.path; }) add(record.path);
    if constexpr (requires { record.build_id; }) add(as_text(record.build_id));
    if constexpr (requires { record.comm; }) add(record.comm);
    if constexpr (requires { record.name; }) add(record.name);
    return sum;
}

std::uint64_t touch_record(const Record& record) {
    std::uint64_t sum = 0;
    if (const auto* sample = std::get_if<SampleRecord>(&record)) {
        sum += sample->woken_tid + touch(*sample);
    } else {
        std::visit([&](const auto& one) { sum += touch_texts(one); }, record);
    }
    return sum;
}

// One layout of each kind. The id of a sample selects one, as in the event set.
constexpr std::array<SampleLayout, 6> layouts{
    SampleLayout{},
    SampleLayout{wire::StackMode::fp, false, 0x180, 0},
    SampleLayout{wire::StackMode::hybrid, false, 0xff0fff, 2'048},
    SampleLayout{wire::StackMode::dwarf, false, 0xff0fff, 65'528},
    SampleLayout{wire::StackMode::lbr, true, 0, 0},
    SampleLayout{.mode = wire::StackMode::dwarf, .register_mask = 0xff0fff, .stack_bytes = 1'024, .woken_at = 24}};
const SampleLayout& layout_of(Bytes record) { return layouts[sample_id(record) % layouts.size()]; }

// Decodes a record as in a file: in either byte order, with any fields, at any address. The first words are the format,
// the rest is the record.
std::uint64_t decode_any_format(Bytes bytes) {
    ByteReader in(bytes);
    const perf::RecordFormat format{in.u64(), in.u64(), in.u64(), in.u64(), 1};
    const perf::RecordHeader header{in.u16(), in.u16(), 0};
    in.skip(header.misc & 7);
    const Bytes body = in.rest();
    std::uint64_t sum = 0;
    for (const std::endian order : {std::endian::little, std::endian::big}) {
        perf::Decoder decoder(order);
        perf::Sample sample;
        std::vector<perf::CounterValue> values;
        if (decoder.sample(header.misc, body, format, sample)) {
            sum += touch(sample);
            perf::counter_values(sample, format, values);
        }
        sum += perf::own_size(header.type, body, order) + values.size();
        if (const auto trailed = perf::split_trailer(header.type, body, format, order))
            for (const std::byte byte : trailed->body) sum += std::to_integer<std::uint64_t>(byte);
        perf::SideRecord side;
        if (decoder.side_record(header, body, {}, side) == perf::Decoded::ok)
            std::visit([&](const auto& one) { sum += touch_texts(one); }, side);
        if (const auto deferred = decoder.deferred_callchain(body))
            for (const std::uint64_t address : deferred->callchain) sum += address;
    }
    return sum;
}

}  // namespace

// Input: 1 byte for the start position, then the content of the two rings.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 1) return 0;
    const std::uint64_t start = std::uint64_t{data[0]} * 8;
    const std::size_t words = (size - 1) / 16;
    constexpr std::size_t ring_words = 512;  // 4 KiB
    std::array<std::vector<std::uint64_t>, 2> rings;
    std::vector<RingCursor> cursors;
    for (std::size_t ring = 0; ring < 2; ++ring) {
        rings[ring].resize(ring_words);
        const std::size_t count = std::min(words, ring_words);
        for (std::size_t i = 0; i < count; ++i)
            std::memcpy(&rings[ring][(start / 8 + i) % ring_words], data + 1 + (ring * words + i) * 8, 8);
        cursors.emplace_back(std::as_bytes(std::span(rings[ring])).data(), ring_words * 8);
        cursors[ring].tail = start;
        cursors[ring].head = start + count * 8;
    }
    Merge merge;
    SidebandCopies copies;
    std::uint64_t last_ns = 0, records = 0, sum = 0;
    for (const std::uint64_t limit : {std::uint64_t{1} << 32, release_everything}) {
        MergedRecord merged;
        merge.begin(cursors, limit);
        while (merge.next(merged)) {
            if (merged.time_ns < last_ns || ++records > 2 * ring_words) std::abort();
            last_ns = merged.time_ns;
            Record record;
            perf::Origin origin;
            if (decode_record(merged.bytes, layout_of(merged.bytes), record, origin) != perf::Decoded::ok) continue;
            const bool copy = std::visit(
                [&](const auto& one) {
                    if constexpr (requires { copies.is_copy(one, origin.id); }) return copies.is_copy(one, origin.id);
                    return false;
                },
                record);
            sum += touch_record(record) + (copy ? 1U : 0U);
        }
    }
    for (const RingCursor& cursor : cursors)
        if (cursor.tail != cursor.head) std::abort();
    // Also decode the input as one record, whatever its size field.
    std::vector<std::uint64_t> one((size + 7) / 8);
    std::memcpy(one.data(), data, size);
    Record record;
    perf::Origin origin;
    const Bytes bytes = std::as_bytes(std::span(one));
    for (const SampleLayout& layout : layouts)
        if (decode_record(bytes, layout, record, origin) == perf::Decoded::ok) sum += touch_record(record);
    sum += decode_any_format(bytes);
    return sum == 0x1234'5678'9abc'def0 ? 1 : 0;
}
