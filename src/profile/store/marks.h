// What happened to the target and to the recording at moments worth a mark on a time axis: processes that began, became
// another program or ended, samples that were lost, times in which the agent was away, changes that a person made. Memory is bounded: when there are
// too many of a kind, those of the older half that are nearest to each other become one mark with the count of all.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "profile/store/model.h"
#include "wire/batch.h"

namespace flamewire::profile {

enum class MarkKind : std::uint8_t { begin, exec, exit, loss, reconnect, change };
inline constexpr std::size_t mark_kinds = 6;

struct Mark {
    MarkKind kind = MarkKind::begin;
    std::uint64_t start_ns = 0, end_ns = 0;  // CLOCK_MONOTONIC of the target; equal for a moment
    std::uint64_t count = 1;                 // happenings in it; of a loss: what was lost, in the unit of its reason
    ThreadId thread = 0;                     // begin, exec, exit: the main thread of the (first) process
    StringId name = 0;  // begin, exec, exit: what that process was called from then on; change: what
    wire::LossReason reason = wire::LossReason::unknown;  // loss
    EventId event = 0;                                    // loss; 0: not known
    bool operator==(const Mark&) const = default;
};

class Marks {
public:
    explicit Marks(std::size_t max_of_kind = 20'000) : max_of_kind_(max_of_kind) {}

    // In time order, or nearly so. A loss that goes on from the last one of its reason and event extends it.
    void add(const Mark& mark);

    // Marks that overlap [start_ns, end_ns), by their starts. Neighbours of one kind (and reason, and event) that begin
    // less than `merge_ns` after the first of them are one; 0 merges nothing.
    [[nodiscard]] std::vector<Mark> between(std::uint64_t start_ns, std::uint64_t end_ns, std::uint64_t merge_ns) const;
    [[nodiscard]] std::size_t memory_bytes() const;

private:
    std::size_t max_of_kind_;
    std::array<std::vector<Mark>, mark_kinds> by_kind_;
};

}  // namespace flamewire::profile
