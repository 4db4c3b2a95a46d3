// How much of an event's count is in no sample. An inherited event starts with a whole period. So a thread that exits
// after half a period has no sample, and one that exits after one and a half periods has one. Pure.
#pragma once

#include <cstdint>
#include <span>

namespace flamewire::agent {

// For one event of one target, since the previous report.
struct Unsampled {
    std::uint32_t event = 0;                 // index into EventChoice::events
    std::uint32_t pid = 0;                   // the target's
    std::uint64_t counted = 0, missing = 0;  // in the event's unit; missing: to be reported now
    std::uint64_t recent = 0;                // newly missing since the previous report, even if not reportable
    std::uint64_t exited_threads = 0;
};

class UnsampledAccount {
public:
    // Totals since the event was opened.
    struct Totals {
        std::uint64_t counted = 0, sampled = 0;          // in the event's unit
        std::uint64_t all_counted = 0, all_sampled = 0;  // the same over all targets
        std::uint64_t samples = 0;
        std::uint64_t period = 0;  // of a sample, if known before the first sample
        std::uint64_t exited_threads = 0;
        std::uint64_t lost_samples = 0;
    };
    // False if the missing weight cannot be worth reporting, whatever the count is.
    static bool matters(const Totals& totals);
    // Fills all but event and pid. Samples of `undrained_per_1000` of the time since the last call may still be in
    // a ring.
    Unsampled update(const Totals& totals, std::uint64_t undrained_per_1000);

private:
    Totals before_;
    std::uint64_t missing_ = 0, reported_ = 0;
};

// Decides whether events of whole CPUs, which sample every thread, are worth their cost.
class UnsampledPolicy {
public:
    // True if much is missing and threads keep exiting. A program that starts others once does not trigger it.
    bool add(std::span<const Unsampled> reports, std::uint64_t now_ns);
    [[nodiscard]] std::uint32_t event() const { return event_; }
    [[nodiscard]] std::uint64_t missing_percent() const;

private:
    std::uint64_t window_end_ns_ = 0;
    std::uint32_t event_ = 0;
    std::uint64_t counted_ = 0, missing_ = 0, exited_threads_ = 0;  // of event_, in this window
    std::uint32_t hits_ = 0;                                        // calls in a row with much missing
};

}  // namespace flamewire::agent
