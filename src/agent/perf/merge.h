// Records of many rings as one stream in time order. Pure: works on bytes, knows no file descriptors.
//
// The release rule. A record appears in its ring a little after its time stamp was taken, so an empty ring does not
// mean that nothing older is to come. Each round: (1) read the clock, now; (2) only then read every ring's head; (3)
// hand out what is older than now - slack.
//
//        record's time t        record visible            (1) now      (2) heads
//     ───────┼────────────────────┼─────────────────────────┼─────────────┼──────►
//            └───── lateness ─────┘
//
// A record with t < now - slack became visible at t + lateness. When lateness <= slack, that is before now, so before
// the heads were read: it is in this round, together with everything else that is older. What has been handed out is
// then never followed by anything older. Slack is 1 ms; the worst lateness measured was 52 µs. A record that is later
// still gets the time of the newest one handed out, and is counted.
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

// The unread part of one ring. Positions grow for ever; the byte of position p is data[p mod size], size a power of
// two.
class RingCursor {
public:
    RingCursor() = default;
    RingCursor(const std::byte* data, std::uint64_t size) : data_(data), size_(size) {}

    std::uint64_t tail = 0;  // next byte to read
    std::uint64_t head = 0;  // first byte that the kernel has not written yet

    // The record at tail, or an empty span at head. Points into the ring, or into a copy when the record wraps around
    // its end or does not begin at a word; valid until the next call. Records need not be whole words: where less of a
    // stack is left below the end of user space than was asked for, kernels before 6.7 copy just that, and the stack
    // pointer of a 32-bit process may be at half a word. Bytes that cannot be a record make the cursor skip to head,
    // and count as one in `broken`.
    Bytes peek();
    void pop(std::size_t record_size) { tail += record_size; }

    std::uint64_t broken = 0;

private:
    void copy_out(std::uint64_t offset, std::span<std::byte> into) const;

    const std::byte* data_ = nullptr;
    std::uint64_t size_ = 0;
    std::vector<std::uint64_t> copy_;                                   // of words, for the alignment
    std::uint64_t copied_ = std::numeric_limits<std::uint64_t>::max();  // the position of what is in it
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
    // come out.
    void begin(std::span<RingCursor> rings, std::uint64_t limit_ns);
    // The next record; its ring's tail moves past it with the next call. False: the round is over.
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
    std::uint64_t newest_ns_ = 0;  // handed out so far, over all rounds
    std::size_t handed_out_ = 0;   // bytes of the record that the top ring has out
};

}  // namespace flamewire::agent
