#include "profile/store/rows.h"

#include <iterator>
#include <utility>

namespace flamewire::profile {

namespace {

// Room below the first bucket of a new chunk, because batches may overlap a little: 20 s of 10 ms buckets.
constexpr std::uint64_t backward_buckets = 2048;

}  // namespace

std::size_t RowChunk::memory_bytes() const {
    return lanes.capacity() * sizeof(Lane) +
           (offset.capacity() + lane.capacity() + count.capacity()) * sizeof(std::uint16_t) +
           stack.capacity() * sizeof(StackId) + weight.capacity() * sizeof(std::uint32_t) +
           wide.capacity() * sizeof(Wide);
}

void RowChunk::shrink() {
    lanes.shrink_to_fit();
    offset.shrink_to_fit();
    lane.shrink_to_fit();
    count.shrink_to_fit();
    stack.shrink_to_fit();
    weight.shrink_to_fit();
    wide.shrink_to_fit();
}

void RowTable::append(std::uint64_t bucket_ns, const Row& row) {
    if (open_) {
        const RowChunk& chunk = chunks_.back();
        if (chunk.size() >= chunk_rows_ || chunk.bucket_ns != bucket_ns || row.bucket < chunk.base_bucket ||
            row.bucket - chunk.base_bucket > RowChunk::max_offset)
            seal();
    }
    if (!open_) open_chunk(bucket_ns, row.bucket);
    const std::uint16_t lane = lane_index(row.lane);
    RowChunk& chunk = chunks_.back();
    const auto offset = static_cast<std::uint16_t>(row.bucket - chunk.base_bucket);
    const bool wide = row.count >= RowChunk::wide_mark || row.weight > std::numeric_limits<std::uint32_t>::max();
    if (wide) chunk.wide.push_back({narrow32(chunk.size()), row.count, row.weight});
    chunk.first_offset = std::min(chunk.first_offset, offset);
    chunk.last_offset = std::max(chunk.last_offset, offset);
    chunk.offset.push_back(offset);
    chunk.lane.push_back(lane);
    chunk.stack.push_back(row.stack);
    chunk.count.push_back(wide ? RowChunk::wide_mark : static_cast<std::uint16_t>(row.count));
    chunk.weight.push_back(wide ? 0 : static_cast<std::uint32_t>(row.weight));
    ++rows_;
}

void RowTable::seal() {
    if (open_) chunks_.back().shrink();
    open_ = false;
}

std::size_t RowTable::memory_bytes() const {
    std::size_t bytes = chunks_.capacity() * sizeof(RowChunk) + lane_index_.memory_bytes();
    for (const RowChunk& chunk : chunks_) bytes += chunk.memory_bytes();
    return bytes;
}

void RowTable::replace(std::size_t first, std::size_t count, RowTable&& other) {
    other.seal();
    if (first + count == chunks_.size()) seal();
    const auto begin = chunks_.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = begin + static_cast<std::ptrdiff_t>(count);
    for (auto chunk = begin; chunk != end; ++chunk) rows_ -= chunk->size();
    rows_ += other.rows_;
    const auto gap = chunks_.erase(begin, end);
    chunks_.insert(gap, std::make_move_iterator(other.chunks_.begin()), std::make_move_iterator(other.chunks_.end()));
    other.chunks_.clear();
    other.rows_ = 0;
}

std::uint16_t RowTable::lane_index(const Lane& lane) {
    RowChunk& chunk = chunks_.back();
    // Batches are sorted by lane, so the lane of the previous row is the usual one.
    if (!chunk.lane.empty() && chunk.lanes[chunk.lane.back()] == lane) return chunk.lane.back();
    const std::uint64_t hash = lane_hash(lane);
    const auto equal = [&](std::uint32_t id) { return chunk.lanes[id - 1] == lane; };
    if (const std::uint32_t known = lane_index_.find(hash, equal)) return static_cast<std::uint16_t>(known - 1);
    chunk.lanes.push_back(lane);
    const std::uint32_t id = narrow32(chunk.lanes.size());
    lane_index_.insert(hash, id, [&](std::uint32_t other) { return lane_hash(chunk.lanes[other - 1]); });
    return static_cast<std::uint16_t>(id - 1);
}

void RowTable::open_chunk(std::uint64_t bucket_ns, std::uint64_t bucket) {
    RowChunk& chunk = chunks_.emplace_back();
    chunk.bucket_ns = bucket_ns;
    chunk.base_bucket = bucket - std::min(bucket, backward_buckets);
    chunk.level = level_;
    lane_index_.clear();
    open_ = true;
}

}  // namespace flamewire::profile
