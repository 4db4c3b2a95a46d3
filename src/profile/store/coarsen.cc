#include "profile/store/coarsen.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <limits>
#include <optional>
#include <vector>

#include "base/radix_sort.h"

namespace flamewire::profile {

namespace {

// Rows merged in one step. Bounds how long a step blocks the store: a few milliseconds.
constexpr std::size_t step_rows = 65'536;

struct Group {
    std::size_t first = 0, count = 0;
};

// Returns an index. The chunks before it may be coarsened.
std::size_t protected_from(const RowTable& rows, std::size_t max_rows) {
    const std::span<const RowChunk> chunks = rows.chunks();
    std::size_t index = chunks.size();
    std::size_t kept = 0;
    while (index > 0 && kept < max_rows / protected_share) kept += chunks[--index].size();
    return index;
}

// The width of a chunk's buckets at the next level.
std::uint64_t coarse_width(const RowChunk& chunk) {
    return std::max(chunk.bucket_ns, coarse_levels[chunk.level + 1U].bucket_ns);
}

// The older part of the level with the most rows, among levels that can still lose detail.
std::optional<Group> next_group(const RowTable& rows, std::size_t max_rows) {
    const std::span<const RowChunk> chunks = rows.chunks().first(protected_from(rows, max_rows));
    std::array<std::size_t, coarse_levels.size()> level_rows{};
    for (const RowChunk& chunk : chunks) level_rows[chunk.level] += chunk.size();
    const auto fullest = std::max_element(level_rows.begin(), std::prev(level_rows.end()));
    if (*fullest == 0) return std::nullopt;
    const auto level = static_cast<std::uint8_t>(fullest - level_rows.begin());
    const auto first =
        std::find_if(chunks.begin(), chunks.end(), [&](const RowChunk& chunk) { return chunk.level == level; });
    // A small step, but enough for several new buckets: rows of one bucket in two groups would not be merged.
    const std::uint64_t least_ns = 4 * coarse_width(*first);
    auto last = first;
    std::size_t size = 0;
    const auto takes = [&](const RowChunk& chunk) {
        if (chunk.level != level || chunk.bucket_ns != first->bucket_ns) return false;
        if (size == 0) return true;
        const std::size_t grown = size + chunk.size();
        return grown <= std::min(step_rows, *fullest / 2) ||
               (grown <= step_rows && chunk.first_ns() < first->first_ns() + least_ns);
    };
    while (last != chunks.end() && takes(*last)) size += (last++)->size();
    return Group{static_cast<std::size_t>(first - chunks.begin()), static_cast<std::size_t>(last - first)};
}

// The rows of a group during a merge. Lanes are numbered, so a row is identified by two integers.
class Merger {
public:
    void add(const RowChunk& chunk, std::uint64_t bucket_ns, const CoarseLevel& level, const CoarsenHooks& hooks) {
        std::vector<std::uint64_t> lane_key;
        for (Lane lane : chunk.lanes) {
            if (level.cpu_folded) lane.cpu = folded_cpu;
            if (level.thread_folded) lane.thread = hooks.fold_thread(lane.thread);
            lane_key.push_back(static_cast<std::uint64_t>(number_of(lane)) << 32);
        }
        for (std::size_t index = 0; index < chunk.size(); ++index) {
            const std::uint64_t start_ns = (chunk.base_bucket + chunk.offset[index]) * chunk.bucket_ns;
            const Weight weight = row_weight(chunk, index);
            entries_.push_back({start_ns / bucket_ns, lane_key[chunk.lane[index]] | chunk.stack[index], weight});
        }
    }

    RowTable merge(std::uint64_t bucket_ns, std::size_t chunk_rows, std::uint8_t level) {
        sort();
        RowTable result(chunk_rows, level);
        for (std::size_t i = 0; i < entries_.size();) {
            const Entry& first = entries_[i];
            Weight sum;
            for (; i < entries_.size() && entries_[i].bucket == first.bucket &&
                   entries_[i].lane_and_stack == first.lane_and_stack;
                 ++i)
                sum += entries_[i].weight;
            result.append(bucket_ns, {first.bucket, lanes_[first.lane_and_stack >> 32],
                                      static_cast<StackId>(first.lane_and_stack), sum.samples, sum.weight});
        }
        return result;
    }

private:
    struct Entry {
        std::uint64_t bucket = 0, lane_and_stack = 0;
        Weight weight;
    };

    // Sorts by bucket, lane and stack.
    void sort() {
        std::uint64_t first = std::numeric_limits<std::uint64_t>::max(), last = 0, stacks = 0;
        for (const Entry& entry : entries_) {
            first = std::min(first, entry.bucket);
            last = std::max(last, entry.bucket);
            stacks |= entry.lane_and_stack & 0xffff'ffff;
        }
        const auto stack_bits = static_cast<unsigned>(std::bit_width(stacks)),
                   lane_bits = static_cast<unsigned>(std::bit_width(lanes_.size())),
                   bucket_bits = static_cast<unsigned>(std::bit_width(last - std::min(first, last)));
        if (stack_bits + lane_bits + bucket_bits > 64) {
            std::ranges::sort(entries_, [](const Entry& a, const Entry& b) {
                return a.bucket != b.bucket ? a.bucket < b.bucket : a.lane_and_stack < b.lane_and_stack;
            });
            return;
        }
        std::vector<KeyedIndex> order, scratch;
        order.reserve(entries_.size());
        for (const Entry& entry : entries_) {
            const std::uint64_t lane = entry.lane_and_stack >> 32, stack = entry.lane_and_stack & 0xffff'ffff;
            const std::uint64_t key = (((entry.bucket - first) << lane_bits | lane) << stack_bits) | stack;
            order.push_back({key, narrow32(order.size())});
        }
        radix_sort(order, scratch, stack_bits + lane_bits + bucket_bits);
        std::vector<Entry> sorted;
        sorted.reserve(entries_.size());
        for (const KeyedIndex& one : order) sorted.push_back(entries_[one.index]);
        entries_ = std::move(sorted);
    }

    std::uint32_t number_of(const Lane& lane) {
        const auto equal = [&](std::uint32_t id) { return lanes_[id] == lane; };
        if (const std::uint32_t known = index_.find(lane_hash(lane), equal)) return known;
        lanes_.push_back(lane);
        const std::uint32_t id = narrow32(lanes_.size() - 1);
        index_.insert(lane_hash(lane), id, [this](std::uint32_t other) { return lane_hash(lanes_[other]); });
        return id;
    }

    std::vector<Lane> lanes_{1};  // [0] is unused: the index reserves id 0
    IdIndex index_;
    std::vector<Entry> entries_;
};

void coarsen(RowTable& rows, const Group& group, std::size_t chunk_rows, const CoarsenHooks& hooks) {
    const auto chunks = rows.chunks().subspan(group.first, group.count);
    const auto level = static_cast<std::uint8_t>(chunks[0].level + 1);
    const std::uint64_t bucket_ns = coarse_width(chunks[0]);
    Merger merger;
    for (const RowChunk& chunk : chunks) {
        if (chunk.level == 0) hooks.coarsened(chunk);
        merger.add(chunk, bucket_ns, coarse_levels[level], hooks);
    }
    rows.replace(group.first, group.count, merger.merge(bucket_ns, chunk_rows, level));
}

}  // namespace

std::size_t chunk_rows_for(std::size_t max_rows) { return std::clamp<std::size_t>(max_rows / 32, 16, 16'384); }

void enforce_row_limit(RowTable& rows, std::size_t max_rows, const CoarsenHooks& hooks) {
    // While there is room, do one step per call, so that no single call has to do all of the work.
    if (rows.size() > max_rows / 16 * 15 && rows.size() <= max_rows) {
        if (const std::optional<Group> group = next_group(rows, max_rows))
            coarsen(rows, *group, chunk_rows_for(max_rows), hooks);
        return;
    }
    while (rows.size() > max_rows) {
        if (const std::optional<Group> group = next_group(rows, max_rows)) {
            coarsen(rows, *group, chunk_rows_for(max_rows), hooks);
        } else {
            hooks.dropped(rows.chunks()[0]);
            rows.replace(0, 1, RowTable(1));
        }
    }
}

}  // namespace flamewire::profile
