#include "agent/perf/merge.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "agent/perf/decode.h"
#include "perf/abi.h"

namespace flamewire::agent {

Bytes RingCursor::peek() {
    if (tail == head) return {};
    const std::uint64_t available = head - tail;
    const std::uint64_t offset = tail & (size_ - 1);
    std::array<std::byte, perf::header_size> head_bytes{};
    const bool possible = available >= perf::header_size && available <= size_;
    if (possible) copy_out(offset, head_bytes);
    const auto header = possible ? perf::record_header(head_bytes) : std::nullopt;
    if (!header || header->size < perf::header_size || header->size > available) {
        ++broken;
        tail = head;
        return {};
    }
    if (offset % sizeof(std::uint64_t) == 0 && offset + header->size <= size_) return {data_ + offset, header->size};

    copy_.resize(
        std::max<std::size_t>(copy_.size(), (header->size + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t)));
    const auto copy = std::as_writable_bytes(std::span(copy_)).first(header->size);
    if (copied_ != tail) copy_out(offset, copy);
    copied_ = tail;
    return copy;
}

void RingCursor::copy_out(std::uint64_t offset, std::span<std::byte> into) const {
    const std::size_t first = std::min(into.size(), static_cast<std::size_t>(size_ - offset));
    std::memcpy(into.data(), data_ + offset, first);
    if (first < into.size()) std::memcpy(into.data() + first, data_, into.size() - first);
}

void Merge::begin(std::span<RingCursor> rings, std::uint64_t limit_ns) {
    rings_ = rings;
    limit_ns_ = limit_ns;
    delivered_ = 0;
    heap_.clear();
    for (std::size_t ring = 0; ring < rings.size(); ++ring) {
        const Bytes record = rings[ring].peek();
        if (!record.empty()) heap_.push_back({record_time(record), ring});
    }
    std::make_heap(heap_.begin(), heap_.end(), [](const Entry& a, const Entry& b) { return a.time_ns > b.time_ns; });
}

bool Merge::next(MergedRecord& out) {
    if (heap_.empty()) return false;
    if (delivered_ > 0) {
        RingCursor& ring = rings_[heap_.front().ring];
        ring.pop(delivered_);
        delivered_ = 0;
        const Bytes following = ring.peek();
        if (following.empty()) {
            heap_.front() = heap_.back();
            heap_.pop_back();
            if (heap_.empty()) return false;
        } else {
            heap_.front().time_ns = record_time(following);
        }
        sift_down();
    }
    const Entry& top = heap_.front();
    if (top.time_ns > limit_ns_) return false;
    out.ring = top.ring;
    out.bytes = rings_[top.ring].peek();
    out.late = top.time_ns < newest_ns_;
    newest_ns_ = std::max(newest_ns_, top.time_ns);
    out.time_ns = newest_ns_;
    delivered_ = out.bytes.size();
    return true;
}

// Moves the top entry to its place after it was replaced.
void Merge::sift_down() {
    const Entry moving = heap_.front();
    std::size_t hole = 0;
    for (std::size_t child = 1; child < heap_.size(); child = 2 * hole + 1) {
        if (child + 1 < heap_.size() && heap_[child + 1].time_ns < heap_[child].time_ns) ++child;
        if (heap_[child].time_ns >= moving.time_ns) break;
        heap_[hole] = heap_[child];
        hole = child;
    }
    heap_[hole] = moving;
}

}  // namespace flamewire::agent
