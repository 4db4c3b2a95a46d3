// Events of the target and of the recording that get a mark on a time axis: processes that began, called exec or ended,
// lost samples, times when the agent was disconnected, and changes that a person made. Memory is bounded: if there are
// too many of a kind, marks in the older half that are closest to each other merge into one mark with the total count.
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
    std::uint64_t count = 1;                 // number of events; for a loss: the amount, in the unit of its reason
    ThreadId thread = 0;                     // begin, exec, exit: the main thread of the (first) process
    StringId name = 0;  // begin, exec, exit: the name of the process from then on; change: what changed
    wire::LossReason reason = wire::LossReason::unknown;  // loss
    EventId event = 0;                                    // loss; 0: unknown
    bool operator==(const Mark&) const = default;
};

class Marks {
public:
    explicit Marks(std::size_t max_of_kind = 20'000) : max_of_kind_(max_of_kind) {}

    // Marks must come in approximate time order. A loss that continues the last one of its reason and event extends it.
    void add(const Mark& mark);

    // Marks that overlap [start_ns, end_ns), sorted by start. Neighbors of one kind (and reason, and event) merge into
    // one if they begin less than `merge_ns` after the first of them; 0 merges nothing.
    [[nodiscard]] std::vector<Mark> between(std::uint64_t start_ns, std::uint64_t end_ns, std::uint64_t merge_ns) const;
    [[nodiscard]] std::size_t memory_bytes() const;

private:
    std::size_t max_of_kind_;
    std::array<std::vector<Mark>, mark_kinds> by_kind_;
};

}  // namespace flamewire::profile
