// Merges the records of many rings into one stream in time order. Pure: works on bytes, without file descriptors.
//
// The release rule. A record becomes visible in its ring shortly after its time stamp was taken, so an empty ring does
// not imply that no older record will follow. Each round: (1) read the clock, now; (2) only then read every ring's
// head; (3) deliver the records older than now - slack.
//
//        record's time t        record visible            (1) now      (2) heads
//     ───────┼────────────────────┼─────────────────────────┼─────────────┼──────►
//            └───── lateness ─────┘
//
// A record with t < now - slack became visible at t + lateness. If lateness <= slack, that is before now, so before the
// heads were read: this round contains it, together with everything older. So no record older than a delivered one can
// follow. Slack is 1 ms; the worst measured lateness was 52 µs. A record that is later than the slack gets the time of
// the newest delivered record, and is counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/bytes.h"

namespace flamewire::agent {

inline constexpr std::uint64_t merge_slack_ns = 1'000'000;
inline constexpr std::uint64_t release_everything = std::numeric_limits<std::uint64_t>::max();

// The unread part of one ring. Positions grow without bound. The byte at position p is data[p mod size], where size is
// a power of two.
class RingCursor {
public:
    RingCursor() = default;
    RingCursor(const std::byte* data, std::uint64_t size) : data_(data), size_(size) {}

    std::uint64_t tail = 0;  // next byte to read
    std::uint64_t head = 0;  // first byte that the kernel has not written yet

    // The record at tail, or an empty span at head; valid until the next call. It points into the ring, or into a copy
    // if the record wraps around the end or does not start at a word boundary. Records need not be whole words: if less
    // stack than requested is left below the end of user space, kernels before 6.7 copy exactly that, and the stack
    // pointer of a 32-bit process may be at half a word. For bytes that cannot be a record the cursor skips to head,
    // and `broken` grows by one.
    Bytes peek();
    void pop(std::size_t record_size) { tail += record_size; }

    std::uint64_t broken = 0;

private:
    void copy_out(std::uint64_t offset, std::span<std::byte> into) const;

    const std::byte* data_ = nullptr;
    std::uint64_t size_ = 0;
    std::vector<std::uint64_t> copy_;                                   // of words, for alignment
    std::uint64_t copied_ = std::numeric_limits<std::uint64_t>::max();  // the position of its content
};

struct MergedRecord {
    std::size_t ring = 0;
    Bytes bytes;
    std::uint64_t time_ns = 0;  // never smaller than the one before
    bool late = false;          // time_ns was raised to keep that order
};

class Merge {
public:
    // Starts a round over `rings`, which must outlive it and have their heads set. Only records with time <= limit_ns
    // are returned.
    void begin(std::span<RingCursor> rings, std::uint64_t limit_ns);
    // The next record; the next call moves its ring's tail past it. False: the round is over.
    bool next(MergedRecord& out);

private:
    struct Entry {
        std::uint64_t time_ns;
        std::size_t ring;
    };
    void sift_down();

    std::span<RingCursor> rings_;
    std::vector<Entry> heap_;  // smallest time first
    std::uint64_t limit_ns_ = 0;
    std::uint64_t newest_ns_ = 0;  // newest time delivered so far, over all rounds
    std::size_t delivered_ = 0;    // size of the record last returned from the top ring
};

}  // namespace flamewire::agent
