// The rows of a store in columns, 14 bytes each. A chunk is a run of rows in order of arrival that share one bucket
// width. It has a dictionary of lanes (event, thread, cpu), so a filter is evaluated once per lane, not once per row. A
// chunk that has no matching lane or is outside the time range is skipped as a whole.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "profile/store/id_index.h"
#include "profile/store/interruption.h"
#include "profile/store/model.h"

namespace flamewire::profile {

// The cpu of rows whose cpus were merged.
inline constexpr std::uint32_t folded_cpu = std::numeric_limits<std::uint32_t>::max();

struct Lane {
    EventId event = 0;
    ThreadId thread = 0;
    std::uint32_t cpu = 0;
    bool operator==(const Lane&) const = default;
};
inline std::uint64_t lane_hash(const Lane& lane) {
    return hash_mix((static_cast<std::uint64_t>(lane.event) << 32) | lane.thread, hash_seed() ^ lane.cpu);
}

// One row as a value. Its bucket starts at bucket * the width of its chunk.
struct Row {
    std::uint64_t bucket = 0;
    Lane lane;
    StackId stack = 0;
    std::uint64_t count = 0, weight = 0;
};

struct RowChunk {
    // A row whose count or weight does not fit its column. Its count column holds `wide_mark`.
    struct Wide {
        std::uint32_t row = 0;
        std::uint64_t count = 0, weight = 0;
    };
    static constexpr std::uint16_t wide_mark = 0xffff;
    static constexpr std::uint64_t max_offset = 0xffff;

    std::uint64_t bucket_ns = 0;
    std::uint64_t base_bucket = 0;  // offset 0
    std::uint16_t first_offset = 0xffff, last_offset = 0;
    std::uint8_t level = 0;  // of coarsening, see coarsen.h
    std::vector<Lane> lanes;
    std::vector<std::uint16_t> offset;  // bucket - base_bucket
    std::vector<std::uint16_t> lane;    // into lanes
    std::vector<std::uint16_t> count;
    std::vector<StackId> stack;
    std::vector<std::uint32_t> weight;
    std::vector<Wide> wide;  // by ascending row

    [[nodiscard]] std::size_t size() const { return stack.size(); }
    [[nodiscard]] std::uint64_t first_ns() const { return (base_bucket + first_offset) * bucket_ns; }
    [[nodiscard]] std::uint64_t last_ns() const {
        return (base_bucket + last_offset) * bucket_ns;
    }  // start of the last bucket
    [[nodiscard]] std::uint64_t end_ns() const { return last_ns() + bucket_ns; }
    [[nodiscard]] std::size_t memory_bytes() const;
    void shrink();
};

// A filter prepared for rows.
struct RowFilter {
    std::uint64_t start_ns = 0, end_ns = std::numeric_limits<std::uint64_t>::max();
    EventId event = 0;                  // 0: all
    std::vector<std::uint8_t> threads;  // by thread id: 1 if wanted; empty: all
    [[nodiscard]] bool wants(const Lane& lane) const {
        return (event == 0 || lane.event == event) && (threads.empty() || threads[lane.thread] != 0);
    }
};

class RowTable {
public:
    explicit RowTable(std::size_t chunk_rows, std::uint8_t level = 0) : chunk_rows_(chunk_rows), level_(level) {}

    void append(std::uint64_t bucket_ns, const Row& row);
    // Closes the chunk that is being filled and frees its unused capacity.
    void seal();

    [[nodiscard]] std::size_t size() const { return rows_; }
    [[nodiscard]] std::span<const RowChunk> chunks() const { return chunks_; }
    [[nodiscard]] std::size_t memory_bytes() const;

    // Replaces chunks [first, first + count) by those of `other`.
    void replace(std::size_t first, std::size_t count, RowTable&& other);

    // Calls visit(chunk, index of row) for every row that matches.
    template <class Visit>
    void select(const RowFilter& filter, Visit visit) const;

    // Calls visit(row) for every row that matches.
    template <class Visit>
    void for_each(const RowFilter& filter, Visit visit) const;

private:
    std::uint16_t lane_index(const Lane& lane);
    void open_chunk(std::uint64_t bucket_ns, std::uint64_t bucket);

    std::size_t chunk_rows_;
    std::uint8_t level_;
    std::size_t rows_ = 0;
    std::vector<RowChunk> chunks_;
    bool open_ = false;   // the last chunk accepts rows
    IdIndex lane_index_;  // of the open chunk; id = index + 1
};

// The rows of a chunk whose bucket starts in [start, end), as offsets [low, high). low >= high means none.
struct OffsetRange {
    std::uint64_t low = 0, high = 0;
};
inline OffsetRange offset_range(const RowChunk& chunk, std::uint64_t start_ns, std::uint64_t end_ns) {
    const auto bucket_at_or_after = [&](std::uint64_t time_ns) {
        return time_ns / chunk.bucket_ns + (time_ns % chunk.bucket_ns != 0 ? 1 : 0);
    };
    const auto offset_of = [&](std::uint64_t time_ns) {
        const std::uint64_t bucket = bucket_at_or_after(time_ns);
        return bucket < chunk.base_bucket ? 0 : std::min(bucket - chunk.base_bucket, RowChunk::max_offset + 1);
    };
    return {offset_of(start_ns), offset_of(end_ns)};
}

template <class Visit>
void RowTable::select(const RowFilter& filter, Visit visit) const {
    std::vector<std::uint8_t> wanted;
    for (const RowChunk& chunk : chunks_) {
        Interruption::check();
        const OffsetRange range = offset_range(chunk, filter.start_ns, filter.end_ns);
        if (range.low >= range.high || chunk.last_offset < range.low || chunk.first_offset >= range.high) continue;
        wanted.clear();
        bool any = false;
        for (const Lane& lane : chunk.lanes) {
            const bool wants = filter.wants(lane);
            wanted.push_back(wants ? 1 : 0);
            any = any || wants;
        }
        if (!any) continue;
        const std::uint8_t* const lane_wanted = wanted.data();
        const std::uint16_t* const lanes = chunk.lane.data();
        const std::uint16_t* const offsets = chunk.offset.data();
        const auto low = static_cast<std::uint32_t>(range.low);
        const auto width = static_cast<std::uint32_t>(range.high - range.low);
        for (std::size_t row = 0, end = chunk.size(); row < end; ++row)
            if (lane_wanted[lanes[row]] != 0 && offsets[row] - low < width) visit(chunk, row);
    }
}

// Count and weight of a row, wherever they are stored.
inline Weight row_weight(const RowChunk& chunk, std::size_t row) {
    if (chunk.count[row] != RowChunk::wide_mark) return {chunk.count[row], chunk.weight[row]};
    const auto wide =
        std::lower_bound(chunk.wide.begin(), chunk.wide.end(), row,
                         [](const RowChunk::Wide& entry, std::size_t index) { return entry.row < index; });
    return {wide->count, wide->weight};
}

template <class Visit>
void RowTable::for_each(const RowFilter& filter, Visit visit) const {
    select(filter, [&](const RowChunk& chunk, std::size_t row) {
        const Weight weight = row_weight(chunk, row);
        visit(chunk, Row{chunk.base_bucket + chunk.offset[row], chunk.lanes[chunk.lane[row]], chunk.stack[row],
                         weight.samples, weight.weight});
    });
}

}  // namespace flamewire::profile
