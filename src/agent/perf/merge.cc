#include "agent/perf/merge.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "agent/perf/decode.h"

namespace flamewire::agent {

void RingCursor::copy_out(std::byte* to, std::uint64_t offset, std::size_t bytes) const {
    const std::size_t first = std::min(bytes, static_cast<std::size_t>(size_ - offset));
    std::memcpy(to, data_ + offset, first);
    std::memcpy(to + first, data_, bytes - first);
}

Bytes RingCursor::peek() {
    if (tail == head) return {};
    const std::uint64_t available = head - tail;
    const std::uint64_t offset = tail & (size_ - 1);
    std::optional<RecordHeader> header;
    if (available >= record_header_size && available <= size_) {
        std::array<std::byte, record_header_size> bytes;
        copy_out(bytes.data(), offset, bytes.size());
        header = record_header(bytes);
    }
    if (!header || header->size < record_header_size || header->size > available) {
        ++broken;
        tail = head;
        return {};
    }
    if (offset + header->size <= size_ && offset % sizeof(std::uint64_t) == 0) return {data_ + offset, header->size};

    copy_.resize(std::max<std::size_t>(copy_.size(), header->size / sizeof(std::uint64_t) + 1));
    const auto copy = std::as_writable_bytes(std::span(copy_));
    copy_out(copy.data(), offset, header->size);
    return copy.first(header->size);
}

void Merge::begin(std::span<RingCursor> rings, std::uint64_t limit_ns) {
    rings_ = rings;
    limit_ns_ = limit_ns;
    handed_out_ = 0;
    heap_.clear();
    for (std::size_t ring = 0; ring < rings.size(); ++ring) {
        const Bytes record = rings[ring].peek();
        if (!record.empty()) heap_.push_back({record_time(record), ring});
    }
    std::make_heap(heap_.begin(), heap_.end(), [](const Entry& a, const Entry& b) { return a.time_ns > b.time_ns; });
}

bool Merge::next(MergedRecord& out) {
    if (heap_.empty()) return false;
    if (handed_out_ > 0) {
        RingCursor& ring = rings_[heap_.front().ring];
        ring.pop(handed_out_);
        handed_out_ = 0;
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
    handed_out_ = out.bytes.size();
    return true;
}

// Puts the top where it belongs, after it was replaced.
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
