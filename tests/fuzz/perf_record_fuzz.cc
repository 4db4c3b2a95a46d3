// Any bytes as the content of two rings, at any position: the merge and the decoder must neither read outside nor stop
// making progress.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "agent/perf/decode.h"
#include "agent/perf/merge.h"
#include "agent/perf/owners.h"

using namespace flamewire;
using namespace flamewire::agent;

namespace {

// Touches every byte that a decoded record shows.
std::uint64_t touch(const Record& record) {
    std::uint64_t sum = 0;
    if (const auto* sample = std::get_if<SampleRecord>(&record)) {
        sum += sample->woken_tid;
        for (const std::uint64_t ip : sample->callchain) sum += ip;
        for (const std::uint64_t value : sample->registers) sum += value;
        for (const std::byte byte : sample->stack) sum += std::to_integer<std::uint64_t>(byte);
        for (const BranchEntry& branch : sample->branches) sum += branch.from + branch.to + branch.flags;
    } else if (const auto* map = std::get_if<Mmap2Record>(&record)) {
        for (const char letter : map->path) sum += static_cast<unsigned char>(letter);
        for (const std::byte byte : map->build_id) sum += std::to_integer<std::uint64_t>(byte);
    } else if (const auto* comm = std::get_if<CommRecord>(&record)) {
        for (const char letter : comm->comm) sum += static_cast<unsigned char>(letter);
    }
    return sum;
}

// One layout of each kind; the id of a sample chooses, as in the event set.
constexpr std::array<SampleLayout, 6> layouts{
    SampleLayout{},
    SampleLayout{wire::StackMode::fp, false, 0x180, 0},
    SampleLayout{wire::StackMode::hybrid, false, 0xff0fff, 2'048},
    SampleLayout{wire::StackMode::dwarf, false, 0xff0fff, 65'528},
    SampleLayout{wire::StackMode::lbr, true, 0, 0},
    SampleLayout{.mode = wire::StackMode::dwarf, .register_mask = 0xff0fff, .stack_bytes = 1'024, .woken_at = 24}};
const SampleLayout& layout_of(Bytes record) { return layouts[sample_id(record) % layouts.size()]; }

}  // namespace

// Input: 1 byte start position, then the content of the rings, dealt out in halves.
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
            RecordOrigin origin;
            if (decode_record(merged.bytes, layout_of(merged.bytes), record, origin) != Decoded::ok) continue;
            sum += touch(record) + (copies.is_copy(record, origin) ? 1U : 0U);
        }
    }
    for (const RingCursor& cursor : cursors)
        if (cursor.tail != cursor.head) std::abort();
    // Also as one record, whatever its size field says about the rest.
    std::vector<std::uint64_t> one((size + 7) / 8);
    std::memcpy(one.data(), data, size);
    Record record;
    RecordOrigin origin;
    const Bytes bytes = std::as_bytes(std::span(one));
    for (const SampleLayout& layout : layouts)
        if (decode_record(bytes, layout, record, origin) == Decoded::ok) sum += touch(record);
    return sum == 0x1234'5678'9abc'def0 ? 1 : 0;
}
